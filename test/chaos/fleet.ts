import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Failpoint } from '../../src/lib/failpoint.ts';
import type { Place } from './place.ts';

export const workers = ['worker-1', 'worker-2'] as const;
export type Name = `api-${number}` | (typeof workers)[number] | 'upstream' | 'receivers';

/** The API nodes of a run, one for each port. */
export function apisOf({ api_ports }: Pick<Place, 'api_ports'>): Name[] {
  return api_ports.map((_, i): Name => `api-${i + 1}`);
}

/**
 * Alone on the machine it takes 1.5 s; beside many others of them, and while PostgreSQL is killed, far longer. Outages of
 * the database follow one another: five of 90 s began in a row, and no process starts meanwhile.
 */
const start_ms_max = 600_000;

type Member = {
  child: ChildProcessByStdio<Writable, Readable, Readable> | undefined;
  /** It has said that it runs. */
  up: boolean;
  up_since_ms: number;
  /** Its next death is our doing. */
  doomed: boolean;
  stopped: boolean;
  failpoint: Failpoint | undefined;
  births: number;
  /** By how much its clock is ahead. */
  clock_min: number;
};

/** The processes of a run. One that ends is started again after a moment, as a supervisor would. */
export class Fleet {
  /** Ends of processes that ran and that nobody had killed; each is a fault of the service. */
  readonly surprises: string[] = [];
  readonly #place: Place;
  readonly #pause: () => number;
  readonly #members = new Map<Name, Member>();
  #closing = false;

  constructor(place: Place, pause: () => number) {
    this.#place = place;
    this.#pause = pause;
    mkdirSync(join(place.folder, 'logs'), { recursive: true });
  }

  /** Starts all of them; resolves when all run. */
  async start(): Promise<void> {
    const apis = apisOf(this.#place);
    for (const name of [...apis, ...workers, 'upstream', 'receivers'] as const) {
      this.#members.set(name, {
        child: undefined,
        up: false,
        doomed: false,
        stopped: false,
        failpoint: undefined,
        births: 0,
        up_since_ms: 0,
        clock_min: 0,
      });
      this.#spawn(name);
      if (name === 'upstream' || name === apis[0]) await this.#until(() => this.#member(name).up); // it migrates
    }
    await this.allUp();
  }

  /** Resolves when everything runs and nothing is stopped. */
  allUp(): Promise<void> {
    return this.#until(() => [...this.#members.values()].every((member) => member.up && !member.stopped));
  }

  isUp(name: Name): boolean {
    return this.#member(name).up && !this.#member(name).stopped;
  }

  /** With SIGKILL, or what is given. It starts again by itself. */
  kill(name: Name, signal: NodeJS.Signals = 'SIGKILL'): void {
    const member = this.#member(name);
    member.doomed = true;
    member.child?.kill(signal);
    if (member.stopped) member.child?.kill('SIGCONT');
    member.stopped = false;
  }

  /** Resolves when one that was started after this call runs. */
  async reborn(name: Name): Promise<void> {
    const { births } = this.#member(name);
    await this.#until(() => this.#member(name).births > births && this.#member(name).up);
  }

  /** Resolves when one of them has run for this long: a busy machine takes its time to start one again. */
  oneUp(of: readonly Name[], for_ms: number): Promise<void> {
    const isReady = (name: Name) => this.isUp(name) && performance.now() - this.#member(name).up_since_ms >= for_ms;
    return this.#until(() => of.some(isReady));
  }

  /** Stands still for this long, and does not know it. */
  async freeze(name: Name, duration_ms: number): Promise<void> {
    const member = this.#member(name);
    const { child } = member;
    child?.kill('SIGSTOP');
    member.stopped = true;
    await sleep(duration_ms);
    if (member.child !== child) return; // killed meanwhile
    child?.kill('SIGCONT');
    member.stopped = false;
  }

  /** Kills it, and lets the next one kill itself at this place. */
  arm(name: Name, failpoint: Failpoint): void {
    this.#member(name).failpoint = failpoint;
    this.kill(name);
  }

  /** The clock of its system steps, and stays so when it starts again. */
  setClock(name: Name, minutes: number): void {
    const member = this.#member(name);
    member.clock_min = minutes;
    member.child?.stdin.write(`clock ${minutes}\n`);
  }

  /** Nobody dies by a failpoint any more. */
  disarm(): void {
    for (const [name, member] of this.#members) {
      if (member.failpoint !== undefined) this.kill(name);
      member.failpoint = undefined;
    }
  }

  /** Stops all in order, with force after 15 s. */
  async stop(): Promise<void> {
    this.#closing = true;
    const children = [...this.#members.values()].flatMap(({ child }) => (child ? [child] : []));
    for (const child of children) child.kill('SIGCONT');
    for (const child of children) child.kill('SIGTERM');
    const force = setTimeout(() => this.killAll(), 15_000);
    for (const child of children) if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    clearTimeout(force);
  }

  /** At once, for the end of this process. */
  killAll(): void {
    this.#closing = true;
    for (const { child } of this.#members.values()) child?.kill('SIGKILL');
  }

  #member(name: Name): Member {
    const member = this.#members.get(name);
    if (!member) throw new Error(`there is no ${name}`);
    return member;
  }

  #spawn(name: Name): void {
    const member = this.#member(name);
    const { folder } = this.#place;
    const program = name === 'upstream' || name === 'receivers' ? `${name}-child.ts` : 'node-child.ts';
    const child = spawn(process.execPath, [join(import.meta.dirname, program), folder], {
      env: this.#environment(name, member),
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    Object.assign(member, { child, up: false, doomed: false, stopped: false, births: member.births + 1 });
    const log = join(folder, 'logs', `${name}.log`);
    child.stdout.on('data', (chunk: Buffer) => {
      if (chunk.includes('running')) Object.assign(member, { up: true, up_since_ms: performance.now() });
      appendFileSync(log, chunk);
    });
    child.stderr.on('data', (chunk: Buffer) => appendFileSync(log, chunk));
    child.stdin.on('error', () => undefined);
    child.once('exit', (code, signal) => void this.#ended(name, member, code ?? signal));
  }

  async #ended(name: Name, member: Member, how: number | string | null): Promise<void> {
    const by_failpoint = member.failpoint !== undefined && how === 'SIGKILL';
    if (by_failpoint && !member.doomed) member.failpoint = undefined;
    // One that could not start yet, for want of the database, is no surprise.
    if (member.up && !member.doomed && !by_failpoint && !this.#closing) this.surprises.push(`${name} ended: ${how}`);
    member.up = false;
    member.child = undefined;
    await sleep(this.#pause());
    if (!this.#closing) this.#spawn(name);
  }

  #environment(name: Name, { failpoint, clock_min }: Member): NodeJS.ProcessEnv {
    const { folder, nodes_database_url, api_ports } = this.#place;
    const port = api_ports[Math.max(0, apisOf(this.#place).indexOf(name))];
    return {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], // a start takes half as long
      DATABASE_URL: nodes_database_url,
      CHAOS_CLOCK_MIN: String(clock_min),
      MEDLEY_DATA: join(folder, 'data'),
      MEDLEY_CONFIG: join(folder, 'medley.yaml'),
      MEDLEY_ROLE: name.startsWith('api') ? 'api' : 'worker',
      MEDLEY_BASE_URL: `http://127.0.0.1:${api_ports[0]}`,
      PORT: String(port),
      ...(failpoint && { MEDLEY_FAILPOINTS: `${failpoint}=kill` }),
    };
  }

  async #until(isTrue: () => boolean): Promise<void> {
    for (const give_up_at_ms = performance.now() + start_ms_max; !isTrue(); await sleep(20)) {
      if (this.#closing) return;
      const [hopeless] = [...this.#members].filter(([, member]) => member.births > 5 && member.up_since_ms === 0);
      if (hopeless) throw new Error(`${hopeless[0]} does not start; see its log`);
      if (performance.now() > give_up_at_ms) throw new Error('a process did not start in time; see the logs');
    }
  }
}
