import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const script = join(import.meta.dirname, '../../scripts/medley.mjs');

/** A command of a caller while it runs: what it has printed so far, and how it ends. */
export type Running = {
  child: ChildProcessWithoutNullStreams;
  readonly out: Buffer;
  readonly error: string;
  /** Resolves to the exit code. */
  ended: Promise<number | null>;
};

/** Somebody at a machine: a home of their own, and no service there. */
export class Person {
  readonly folder = mkdtempSync(join(tmpdir(), 'medley-caller-'));
  readonly env: Record<string, string>;

  constructor(env: Record<string, string> = {}) {
    this.env = { XDG_CONFIG_HOME: join(this.folder, 'config'), ...env };
  }

  start(words: readonly string[], env: Record<string, string> = {}): Running {
    const inherited = Object.entries(process.env).filter(([name]) => !/^(?:MEDLEY_|XDG_|DATABASE_URL$)/.test(name));
    const child = spawn(process.execPath, [script, ...words], {
      cwd: this.folder,
      env: { ...Object.fromEntries(inherited), ...this.env, ...env },
    });
    const chunks: Buffer[] = [];
    let error = '';
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => (error += chunk.toString()));
    const ended = once(child, 'close').then(() => child.exitCode);
    return {
      child,
      ended,
      get out() {
        return Buffer.concat(chunks);
      },
      get error() {
        return error;
      },
    };
  }

  /** Runs a command to its end, with this on stdin. */
  async run(words: readonly string[], { stdin = '', env = {} }: { stdin?: string; env?: Record<string, string> } = {}) {
    const running = this.start(words, env);
    running.child.stdin.on('error', () => undefined); // it may end before it has read all
    running.child.stdin.end(stdin);
    const code = await running.ended;
    return { code, out: running.out.toString(), error: running.error };
  }

  /** Runs a command with `--json` and returns its object. */
  async json<T>(words: readonly string[], options?: { stdin?: string }): Promise<T> {
    const { code, out, error } = await this.run([...words, '--json'], options);
    if (code !== 0 || !/^\{.*\}\n$/.test(out)) throw new Error(`${words.join(' ')} ended with ${code}: ${out}${error}`);
    const object: T = JSON.parse(out);
    return object;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Makes a child take its standard streams for a terminal's. */
export const as_terminal = {
  NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(
    'for (const each of [process.stdin, process.stdout, process.stderr]) each.isTTY = true;',
  )}`,
};
