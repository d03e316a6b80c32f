import type { Caller } from '../accounts/authenticate.ts';
import { reaches } from '../accounts/limited-keys.ts';
import type { JsonObject } from '../catalog/model.ts';
import type { Semaphore } from '../concurrency/semaphore.ts';
import type { Db } from '../db/database.ts';
import { findFile, type CallerFile } from '../files/files.ts';
import type { Clock } from '../lib/clock.ts';
import { readBytes } from '../lib/read-bytes.ts';
import { tooManyLarge } from '../limits/body-memory.ts';
import type { Storage } from '../storage/storage.ts';
import type { CallerCodec } from '../styles/codec.ts';
import { isObject, mistake } from '../styles/fields.ts';
import { replacedAt } from '../styles/links.ts';
import { findUploads, type Upload, type UploadedFile } from '../styles/uploads.ts';
import type { RequestMemory } from './request-memory.ts';

/** The parts of the app that reading uploaded files takes. */
export type UploadParts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly storage: Storage;
  readonly limits: { readonly link_memory: Semaphore };
};

const files_max = 32;
const file_bytes_max = 20_971_520;

/** The size of all files of a request together, as of those behind links. */
const files_bytes_max = 67_108_864;

/** Time that a caller waits for memory, as of bodies. */
const wait_ms = 10_000;

/** `caller`: absent of a request that was accepted before, which waits until others have ended. */
type Sent = { account_id: string; caller?: Caller; body: Record<string, unknown> | undefined; gone: AbortSignal };

/**
 * Returns a body with the caller's uploaded files in place of their ids, whose memory is taken until the request's is let
 * go; undefined if it names none. Rejects with ApiError 400 naming the field of a file that is not there, or too much;
 * 429 to a caller for whom there is no memory in time.
 */
export async function withUploads(
  parts: UploadParts,
  style: CallerCodec,
  { account_id, caller, body, gone }: Sent,
  memory: RequestMemory,
): Promise<JsonObject | undefined> {
  const { turns_field } = style.caller;
  if (!isObject(body) || turns_field === undefined) return undefined;
  const uploads = findUploads(body, turns_field);
  if (uploads.length === 0) return undefined;
  const files = await findAll(parts, { account_id, caller }, uploads);
  const weight = [...files.values()].reduce((sum, { size_bytes }) => sum + Number(size_bytes), 0);
  const waiting = { weight, signal: gone, ...(caller && { timeout_ms: wait_ms }) };
  const permit = await parts.limits.link_memory.acquire(account_id, waiting);
  if (!permit) throw gone.aborted ? gone.reason : tooManyLarge();
  memory.add(() => permit.release());
  const read = new Map<string, UploadedFile>();
  for (const upload of uploads) {
    const file = files.get(upload.file_id);
    if (file && !read.has(file.id)) read.set(file.id, await readFile(parts, file, upload));
  }
  let changed = body;
  for (const { file_id, place, replace } of uploads) {
    const file = read.get(file_id);
    if (file) changed = replacedAt(changed, place, () => replace(file));
  }
  return changed;
}

/** Finds the files of all ids, which are few enough and small enough. */
async function findAll(
  { db, clock }: UploadParts,
  { account_id, caller }: { account_id: string; caller: Caller | undefined },
  uploads: readonly Upload[],
): Promise<Map<string, CallerFile>> {
  const files = new Map<string, CallerFile>();
  let left_bytes = files_bytes_max;
  for (const [index, { file_id, at }] of uploads.entries()) {
    if (index === files_max) throw mistake(at, `is one file too many: a request may name ${files_max}`);
    const file = files.get(file_id) ?? (await findFile(db, { account_id, id: file_id }, new Date(clock.now())));
    if (!file || file.task_id !== null) throw unknownFileAt(at);
    if (caller && !(await reaches(db, caller, file.key_id))) throw unknownFileAt(at);
    files.set(file_id, file);
    if (file.size_bytes > file_bytes_max) throw mistake(at, `names a file of more than ${file_bytes_max} bytes`);
    left_bytes -= Number(file.size_bytes); // each place has a copy
    if (left_bytes < 0) throw mistake(at, `exceeds the limit of all files together, ${files_bytes_max} bytes`);
  }
  return files;
}

async function readFile({ storage }: UploadParts, file: CallerFile, { at }: Upload): Promise<UploadedFile> {
  const opened = await storage.open(file.storage_key);
  if (!opened) throw unknownFileAt(at);
  const bytes = await readBytes(opened.stream, file_bytes_max);
  const [content_type = ''] = file.content_type.split(';');
  return { content_type, filename: file.filename, bytes };
}

function unknownFileAt(at: string): Error {
  return mistake(at, 'names no file of this account: upload it with POST /v1/files', 'file_not_found');
}
