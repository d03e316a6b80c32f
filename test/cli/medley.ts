import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { TestApp } from '../helpers/app.ts';

const script = join(import.meta.dirname, '../../scripts/medley.mjs');

export type Said = { code: number | null; out: string; error: string };

/** An operator command as a process of its own: what it printed, and its exit code. */
export async function medley(
  words: string[],
  env: Record<string, string>,
  onStart: (kill: (signal?: NodeJS.Signals) => void) => void = () => undefined,
): Promise<Said> {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !setting.test(name)));
  const child = spawn(process.execPath, [script, ...words], {
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onStart((signal = 'SIGKILL') => child.kill(signal));
  const said: Said = { code: null, out: '', error: '' };
  child.stdout.on('data', (chunk: Buffer) => (said.out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (said.error += chunk.toString()));
  await once(child, 'close');
  return { ...said, code: child.exitCode };
}

/** What the service itself reads from the environment. */
const setting = /^(MEDLEY_|PORT$|HOST$|DATABASE_URL$|REDIS_URL$|\w+_API_(KEY|TOKEN|SECRET)$|FAL_KEY$)/;

/** The commands of one service, with `--json`. */
export type Commands = {
  /** Expects exit code 0 and one JSON object on stdout, and nothing on stderr. */
  ok(...words: string[]): Promise<Answer>;
  /** Expects this exit code, the reason on stderr, and one JSON object on stdout that tells it too. */
  fails(code: number, ...words: string[]): Promise<string>;
  /** Without `--json`: what a person reads. */
  text(...words: string[]): Promise<Said>;
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

/** Operator commands with this environment. */
export function commandsOf(env: Record<string, string>): Commands {
  return {
    ok: async (...words) => {
      const said = await medley([...words, '--json'], env);
      expect(said, said.error).toMatchObject({ code: 0, error: '' });
      return readObject(said.out);
    },
    fails: async (code, ...words) => {
      const said = await medley([...words, '--json'], env);
      expect(said.code, said.error).toBe(code);
      const { message } = readObject(said.out).error;
      expect(message).not.toBe('');
      expect(said.error).toContain(message);
      return message;
    },
    text: (...words) => medley(words, env),
  };
}

/** Operator commands beside a running service: on its database and its data folder. */
export function commandsBeside({ app }: TestApp): Commands {
  const { database_url = '', data_dir, config_file } = app.config;
  return commandsOf({
    DATABASE_URL: database_url,
    MEDLEY_DATA: data_dir,
    ...(config_file !== undefined && { MEDLEY_CONFIG: config_file }),
  });
}

/** One line, one JSON object, nothing else. */
export function readObject(out: string): Answer {
  expect(out).toMatch(/^\{.*\}\n$/);
  const object: Answer = JSON.parse(out);
  return object;
}
