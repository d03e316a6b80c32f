import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readCaller } from '../../config.ts';
import { isRecord } from '../../lib/is-record.ts';
import { openService, type Service } from './service.ts';

/** Models of the key of this person, for the completion of a line: asked for at most every five minutes. */

/** The commands whose first word is a model. */
export type ModelCommand = 'run' | 'chat';

const modalities: Record<ModelCommand, readonly string[]> = { run: ['image', 'video', 'audio'], chat: ['chat'] };

type NamedModel = { id: string; modality: string };

type Cached = { asked_at_ms: number; models: NamedModel[] };

const fresh_ms = 300_000;

/** Somebody has pressed a key and waits. */
const patience_ms = 2_000;

const models_max = 1000;

/** A shell expands what it is offered: an id with any other sign may be a command. */
const safe_id = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/;

/**
 * Returns the ids that `command` takes. Without a sign-in or an answer those of the last time, else none: nobody wants
 * to read an error in the middle of a line.
 */
export async function modelNames(command: ModelCommand, url: string | undefined): Promise<string[]> {
  try {
    const models = await cachedModels(openService(url), Date.now());
    return models.filter(({ modality }) => modalities[command].includes(modality)).map(({ id }) => id);
  } catch {
    return [];
  }
}

async function cachedModels({ url, api_key, client }: Service, now_ms: number): Promise<NamedModel[]> {
  const service = createHash('sha256').update(`${url}\n${api_key}`).digest('hex').slice(0, 16);
  const file = join(readCaller().config_dir, 'medley', `models-${service}.json`);
  const cached = readCached(file);
  if (cached && Math.abs(now_ms - cached.asked_at_ms) < fresh_ms) return cached.models;
  const listed = await listModels(client).catch(() => cached?.models ?? []);
  const models = listed.filter(({ id }) => safe_id.test(id));
  write(file, { asked_at_ms: now_ms, models });
  return models;
}

async function listModels(client: Service['client']): Promise<NamedModel[]> {
  const options = { signal: AbortSignal.timeout(patience_ms) };
  const models = await client.models.list({ limit: models_max }, options).take(models_max);
  return models.map(({ id, modality }) => ({ id, modality }));
}

/** Returns undefined if nobody has asked yet, or the file is of another form. */
function readCached(file: string): Cached | undefined {
  try {
    const json: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (!isRecord(json) || typeof json['asked_at_ms'] !== 'number' || !Array.isArray(json['models'])) return undefined;
    return { asked_at_ms: json['asked_at_ms'], models: json['models'].filter(isNamedModel) };
  } catch {
    return undefined;
  }
}

function isNamedModel(value: unknown): value is NamedModel {
  if (!isRecord(value) || typeof value['id'] !== 'string' || typeof value['modality'] !== 'string') return false;
  return safe_id.test(value['id']);
}

/** Stores what was listed. Nothing is thrown if it cannot be written: the next key asks again. */
function write(file: string, cached: Cached): void {
  const unfinished = `${file}.${randomUUID()}`;
  try {
    mkdirSync(join(file, '..'), { recursive: true, mode: 0o700 });
    writeFileSync(unfinished, JSON.stringify(cached), { mode: 0o600, flag: 'wx' });
    renameSync(unfinished, file);
  } catch {
    rmSync(unfinished, { force: true });
  }
}
