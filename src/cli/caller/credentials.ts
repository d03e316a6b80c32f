import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isRecord } from '../../lib/is-record.ts';
import { program_name } from '../../lib/program-name.ts';
import { CommandError } from '../result.ts';

/** The keys of this person on this machine: one for each address of a service, in a file that only they can read. */

export type Credential = {
  api_key: string;
  /** Undefined for a key that was typed in. */
  account: { id: string; name: string } | undefined;
  key: { id: string; name: string } | undefined;
  /** Its origin: a key that was made for this machine is deleted by `medley logout`. */
  source: 'login' | 'key';
  created_at: string;
};

export type Credentials = { current: string | undefined; services: Map<string, Credential> };

function credentialsFile(config_dir: string): string {
  return join(config_dir, 'medley', 'credentials.json');
}

/** Throws CommandError if the file is there and cannot be used. */
export function readCredentials(config_dir: string): Credentials {
  const path = credentialsFile(config_dir);
  const text = readOwnFile(path);
  if (text === undefined) return { current: undefined, services: new Map() };
  const json = parse(text);
  const services = isRecord(json) ? json['services'] : undefined;
  if (!isRecord(json) || json['version'] !== 1 || !isRecord(services))
    throw new CommandError(`${path} is not as ${program_name} login writes it. Delete it and sign in again.`);
  const entries = Object.entries(services).flatMap(([url, value]): [string, Credential][] => {
    const credential = credentialOf(value);
    return credential ? [[url, credential]] : [];
  });
  const current = json['current'];
  return { current: typeof current === 'string' ? current : undefined, services: new Map(entries) };
}

/** Returns undefined if there is none. What others may read is made one's own again. */
function readOwnFile(path: string): string | undefined {
  try {
    const { mode } = statSync(path);
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
      process.stderr.write(`Others on this machine could read ${path}. They cannot any more.\n`);
      chmodSync(path, 0o600);
    }
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR'))
      return undefined;
    throw new CommandError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function credentialOf(value: unknown): Credential | undefined {
  if (!isRecord(value) || typeof value['api_key'] !== 'string') return undefined;
  return {
    api_key: value['api_key'],
    account: named(value['account']),
    key: named(value['key']),
    source: value['source'] === 'login' ? 'login' : 'key',
    created_at: String(value['created_at'] ?? ''),
  };
}

function named(value: unknown): { id: string; name: string } | undefined {
  if (!isRecord(value) || typeof value['id'] !== 'string' || typeof value['name'] !== 'string') return undefined;
  return { id: value['id'], name: value['name'] };
}

/** Writes the file whole, or not at all. Throws CommandError. */
export function writeCredentials(config_dir: string, { current, services }: Credentials): void {
  const path = credentialsFile(config_dir);
  const unfinished = `${path}.${randomUUID()}`;
  const text = JSON.stringify({ version: 1, current, services: Object.fromEntries(services) }, undefined, 2);
  try {
    mkdirSync(join(config_dir, 'medley'), { recursive: true, mode: 0o700 });
    writeFileSync(unfinished, `${text}\n`, { mode: 0o600, flag: 'wx', flush: true });
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw new CommandError(`${path} cannot be written: ${error instanceof Error ? error.message : String(error)}`);
  }
}
