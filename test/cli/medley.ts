import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { TestApp } from '../helpers/app.ts';
import { depth } from '../helpers/depth.ts';
import { runInResident, type CommandResult } from './resident.ts';

const script = join(import.meta.dirname, '../../scripts/medley.mjs');

/** An operator command as a process of its own: what it printed, and its exit code. */
export async function medley(
  words: string[],
  env: Record<string, string>,
  onStart: (kill: (signal?: NodeJS.Signals) => void) => void = () => undefined,
): Promise<CommandResult> {
  const child = spawn(process.execPath, [script, ...words], {
    env: environment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onStart((signal = 'SIGKILL') => child.kill(signal));
  const result: CommandResult = { code: null, out: '', error: '' };
  child.stdout.on('data', (chunk: Buffer) => (result.out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (result.error += chunk.toString()));
  await once(child, 'close');
  return { ...result, code: child.exitCode };
}

/**
 * The same in one process with those before it, since to load the commands takes 0.3 s of a core. `npm run test:nightly`
 * gives each a process of its own, and so does a command that comes beside another.
 */
export async function medleySoon(words: string[], env: Record<string, string>): Promise<CommandResult> {
  const answer = depth(true, false) ? runInResident({ words, env: environment(env) }) : undefined;
  return answer ?? medley(words, env);
}

/** That of whoever runs the tests, without settings of a service, and these. */
function environment(env: Record<string, string>): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !setting.test(name));
  return { ...Object.fromEntries(inherited), ...env };
}

/** Variables that the service itself reads from the environment. */
const setting = /^(MEDLEY_|PORT$|HOST$|DATABASE_URL$|REDIS_URL$|\w+_API_(KEY|TOKEN|SECRET)$|FAL_KEY$)/;

/** The commands of one service, with `--json`. */
export type Commands = {
  /** Expects exit code 0 and one JSON object on stdout, and nothing on stderr. */
  ok(...words: string[]): Promise<Answer>;
  /** Expects this exit code, the reason on stderr, and one JSON object on stdout that tells it too. */
  fails(code: number, ...words: string[]): Promise<string>;
  /** Without `--json`: what a person reads. */
  text(...words: string[]): Promise<CommandResult>;
};

/** Every key that an answer may have. */
export type Answer = {
  id: string;
  key: string;
  name: string;
  currency: string;
  balance: string;
  held: string;
  available: string;
  status: string;
  webhook_secret: string;
  booked: boolean;
  monthly_limit: string | null;
  deleted: boolean;
  accounts: Answer[];
  keys: (Answer & { spent: string; deleted_at: string | null })[];
  tasks: Answer[];
  model: string;
  estimate: string;
  cost: string;
  error: { type: string; message: string };
  attempts: { number: number; route: string; provider: string; state: string; reason: string | null }[];
  ok: boolean;
  entries: number;
  open_holds: number;
  difference: string;
  findings: { rule: string; subject: string }[];
  checks: { name: string; ok: boolean; detail: string }[];
  applied: string[];
  pending: string[];
  errors: string[];
  warnings: string[];
  nodes: { node: string; ok: boolean; message: string }[];
};

/** Operator commands with this environment, each a process of its own. */
export function commandsOf(env: Record<string, string>, run: typeof medleySoon = medley): Commands {
  return {
    ok: async (...words) => {
      const result = await run([...words, '--json'], env);
      expect(result, result.error).toMatchObject({ code: 0, error: '' });
      return readObject(result.out);
    },
    fails: async (code, ...words) => {
      const result = await run([...words, '--json'], env);
      expect(result.code, result.error).toBe(code);
      const { message } = readObject(result.out).error;
      expect(message).not.toBe('');
      expect(result.error).toContain(message);
      return message;
    },
    text: (...words) => run(words, env),
  };
}

/** Operator commands beside a running service: on its database and its data folder. */
export function commandsBeside({ app }: TestApp): Commands {
  const { database_url = '', data_dir, config_file } = app.config;
  const env = {
    DATABASE_URL: database_url,
    MEDLEY_DATA: data_dir,
    ...(config_file !== undefined && { MEDLEY_CONFIG: config_file }),
  };
  return commandsOf(env, medleySoon);
}

/** One line, one JSON object, nothing else. */
export function readObject(out: string): Answer {
  expect(out).toMatch(/^\{.*\}\n$/);
  const object: Answer = JSON.parse(out);
  return object;
}
