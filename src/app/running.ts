import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError, readConfig, readConfigOver, type Config } from '../config.ts';
import { isAlive } from '../embedded-postgres/process.ts';
import { isRecord } from '../lib/is-record.ts';

/**
 * The environment of the running service, for commands in another terminal: without it a sign-in link has the
 * wrong port, and `config check` reads the wrong file. It contains no secrets.
 */
type Note = { pid: number; env: Record<string, string>; external: boolean };

const noted_names: readonly string[] = [
  'PORT',
  'HOST',
  'MEDLEY_BASE_URL',
  'MEDLEY_CONFIG',
  'MEDLEY_ALLOW_PRIVATE',
  'MEDLEY_LOG_FILE',
];

function noteIn(data_dir: string): string {
  return join(data_dir, 'service.json');
}

/** Writes it into the data folder until the process ends. `url`: where the service listens. */
export function noteRunning(config: Config, url: string): void {
  const { data_dir, host, base_url, config_file, allow_private, log_file } = config;
  const note: Note = { pid: process.pid, env: {}, external: config.database_url !== undefined };
  const env = {
    PORT: new URL(url).port || '80',
    HOST: host,
    MEDLEY_LOG_FILE: log_file ?? 'none',
    ...(base_url !== undefined && { MEDLEY_BASE_URL: base_url }),
    ...(config_file !== undefined && { MEDLEY_CONFIG: config_file }),
    ...(allow_private && { MEDLEY_ALLOW_PRIVATE: '1' }),
  };
  mkdirSync(data_dir, { recursive: true });
  writeFileSync(noteIn(data_dir), JSON.stringify({ ...note, env }), { mode: 0o600 });
  process.on('exit', () => {
    if (readNote(data_dir)?.pid === process.pid) rmSync(noteIn(data_dir), { force: true });
  });
}

/** The configuration of a command: what its own environment leaves open is as in the service that runs on its data. */
export function readCommandConfig(): Config {
  const own = readConfig();
  const note = readNote(own.data_dir);
  if (!note || !isAlive(note.pid)) return own;
  if (note.external && own.database_url === undefined) {
    throw new ConfigError(
      `The service on ${own.data_dir} (process ${note.pid}) uses a database of its own, which DATABASE_URL names there and nothing names here. Set DATABASE_URL as the service has it.`,
    );
  }
  return readConfigOver(note.env);
}

/** Undefined without one that can be read. */
function readNote(data_dir: string): Note | undefined {
  try {
    const note: unknown = JSON.parse(readFileSync(noteIn(data_dir), 'utf8'));
    if (!isRecord(note) || typeof note['pid'] !== 'number' || !isRecord(note['env'])) return undefined;
    const { pid, env } = note;
    const texts = Object.entries(env).flatMap(([name, value]): [string, string][] =>
      noted_names.includes(name) && typeof value === 'string' ? [[name, value]] : [],
    );
    return { pid, env: Object.fromEntries(texts), external: note['external'] === true };
  } catch {
    return undefined;
  }
}
