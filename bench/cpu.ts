import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** CPU time so far of a process, in ticks of 10 ms; 0 where there is no /proc. */
export function cpuOf_us(pid: number | undefined): number {
  return 10_000 * (statOf(String(pid))?.ticks ?? 0);
}

/** The same of all children of a process, of those that have ended too: those of the postmaster are PostgreSQL. */
export function cpuOfChildren_us(parent: number): number {
  const pids = existsSync('/proc/self/stat') ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : [];
  const stats = pids.map(statOf).filter((stat) => stat?.parent === parent);
  const ended = statOf(String(parent))?.ended ?? 0;
  return 10_000 * stats.reduce((sum, stat) => sum + (stat?.ticks ?? 0), ended);
}

/** Ticks of all cores since the machine was started, and those in which a virtual one had work but no core. */
type MachineTime = { all: number; stolen: number };

export function machineTime(): MachineTime {
  const [line = ''] = existsSync('/proc/stat') ? readFileSync('/proc/stat', 'utf8').split('\n') : [];
  const ticks = line.split(/ +/).slice(1, 9).map(Number);
  return { all: ticks.reduce((sum, count) => sum + count, 0), stolen: ticks[7] ?? 0 };
}

/** Returns the share of all cores' time that others on the host took between the two, as text. */
export function stolenShare(before: MachineTime, after: MachineTime): string {
  const all = after.all - before.all;
  return all > 0 ? `${((100 * (after.stolen - before.stolen)) / all).toFixed(1)} %` : 'an unknown part';
}

/** `ended`: the ticks of its children that have ended. */
function statOf(pid: string): { parent: number; ticks: number; ended: number } | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    const [user, system, ended_user, ended_system] = fields.slice(11, 15).map(Number);
    return {
      parent: Number(fields[1]),
      ticks: (user ?? 0) + (system ?? 0),
      ended: (ended_user ?? 0) + (ended_system ?? 0),
    };
  } catch {
    return undefined; // it ended meanwhile
  }
}
