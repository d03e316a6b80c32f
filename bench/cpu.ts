import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** CPU time so far of a process, in ticks of 10 ms; 0 where there is no /proc. */
export function cpuOf_us(pid: number | undefined): number {
  return 10_000 * (statOf(String(pid))?.ticks ?? 0);
}

/** The same of all children of a process that live now: those of the postmaster are PostgreSQL. */
export function cpuOfChildren_us(parent: number): number {
  const pids = existsSync('/proc/self/stat') ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : [];
  const stats = pids.map(statOf).filter((stat) => stat?.parent === parent);
  return 10_000 * stats.reduce((sum, stat) => sum + (stat?.ticks ?? 0), 0);
}

function statOf(pid: string): { parent: number; ticks: number } | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return { parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) };
  } catch {
    return undefined; // it ended meanwhile
  }
}
