import { stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Caller } from '../../accounts/authenticate.ts';
import { ApiError } from '../../errors.ts';
import { withSpool, type Spool } from '../../files/spool.ts';
import { takeTempFiles } from '../../files/temp-files.ts';
import {
  addPart,
  cancelSession,
  findUploadSession,
  listParts,
  type UploadSession,
} from '../../files/upload-sessions.ts';
import { BodyBroken } from '../../http/arriving.ts';
import type { StreamLimits } from '../../http/body-stream.ts';
import type { Answer, PublicCall } from '../../http/endpoint.ts';
import { assert } from '../../lib/assert.ts';
import { mistake } from '../../styles/fields.ts';
import { geminiFile } from '../file-views.ts';
import { completeSession, fileOf, refusal, tooLargeFile, type KeepParts } from '../keep-upload.ts';

/** A session of chunks: what has arrived, the next chunk, the end. */

/** The parts of the app that chunks take. */
export type ChunkParts = KeepParts & {
  readonly config: { readonly data_dir: string; readonly base_url: string | undefined };
  base_url(): string;
};

/** The words of `x-goog-upload-command`, such as `upload, finalize`. */
export function command({ headers }: Pick<PublicCall, 'headers'>): string[] {
  return String(headers['x-goog-upload-command'] ?? '')
    .toLowerCase()
    .split(',')
    .map((word) => word.trim());
}

/** Does what the command of a request says. Errors that no repetition mends say that the upload is over. */
export async function continueSession(
  app: ChunkParts,
  call: PublicCall,
  caller: Caller,
  session: UploadSession,
): Promise<Answer> {
  const words = command(call).join(' ');
  switch (words) {
    case 'query':
      return answerState(app, session);
    case 'cancel':
      return answerState(app, (await cancelSession(app, session)) ?? session);
    case 'upload':
    case 'upload finalize':
    case 'finalize':
      if (session.state === 'completed') return answerState(app, session); // its answer was lost
      return whole(app, session, receive(app, call, caller, session, words));
    default:
      throw mistake('x-goog-upload-command', 'must be upload, "upload, finalize", finalize, query or cancel');
  }
}

/** The state of a session, with its file if it has one. */
async function answerState(app: ChunkParts, session: UploadSession): Promise<Answer> {
  const file = await fileOf(app, session);
  const headers = stateHeaders(app, session, session.received_bytes);
  return { status: 200, headers, body: file ? { file: geminiFile(file, app.base_url()) } : {} };
}

function stateHeaders({ clock }: ChunkParts, session: UploadSession, received_bytes: bigint): Record<string, string> {
  const { state, expires_at } = session;
  const is_active = state === 'pending' && expires_at.getTime() > clock.now();
  const status = is_active ? 'active' : state === 'completed' ? 'final' : 'cancelled';
  return { 'x-goog-upload-status': status, 'x-goog-upload-size-received': String(received_bytes) };
}

/** Ends the session where its bytes are refused for what they are: nothing that follows could change that. */
async function whole(app: ChunkParts, session: UploadSession, work: Promise<Answer>): Promise<Answer> {
  try {
    return await work;
  } catch (error) {
    const current = await findUploadSession(app.db, session);
    if (current?.state === 'completed') return answerState(app, current); // by another request
    if (!(error instanceof ApiError) || ![409, 413, 422].includes(error.status)) throw error;
    await cancelSession(app, session);
    const headers = { ...error.extras.headers, 'x-goog-upload-status': 'final' };
    throw new ApiError(error.kind, error.message, { ...error.extras, headers });
  }
}

async function receive(
  app: ChunkParts,
  call: PublicCall,
  caller: Caller,
  session: UploadSession,
  words: string,
): Promise<Answer> {
  const permit = takeTempFiles(app, caller.account.id);
  try {
    const received_bytes =
      words === 'finalize' ? session.received_bytes : await receiveChunk(app, call, session, offsetOf(call));
    if (words === 'upload') return { status: 200, headers: stateHeaders(app, session, received_bytes), body: {} };
    if (session.size_bytes !== null && received_bytes !== session.size_bytes) {
      const message = `The file has ${received_bytes} bytes so far, but was announced with ${session.size_bytes}.`;
      const headers = stateHeaders(app, session, received_bytes);
      throw new ApiError('invalid_request', message, { headers, param: 'x-goog-upload-command' });
    }
    const parts = await listParts(app.db, session);
    if (parts.length === 0) throw new ApiError('invalid_input', 'file is empty.', { param: 'file' });
    await completeSession(app, caller, { session, parts, field: 'file' });
    return answerState(app, (await findUploadSession(app.db, session)) ?? session);
  } finally {
    permit.release();
  }
}

function offsetOf({ headers }: PublicCall): number {
  const name = 'x-goog-upload-offset';
  const text = String(headers[name] ?? '');
  if (!/^\d{1,15}$/.test(text)) throw mistake(name, 'must say at which byte of the file the chunk begins');
  return Number(text);
}

/**
 * Takes a chunk to the disk and adds it to the session. Of a connection that breaks, what has arrived counts: the next
 * request goes on after it. Returns the bytes that the session has.
 */
async function receiveChunk(
  app: ChunkParts,
  call: PublicCall,
  session: UploadSession,
  offset: number,
): Promise<bigint> {
  const { readStream } = call;
  assert(readStream, 'an endpoint with a stream can read it');
  refuseGap(app, session, session.received_bytes, offset);
  const bytes_max = Math.max(0, largest(app, session) - offset);
  return withSpool(app.config.data_dir, async (spool) => {
    const limits = { bytes_max, tooLarge: () => tooLong(app, session) };
    let broken: BodyBroken | undefined;
    const path = await readStream(limits, (stream) =>
      spool.add(async (file) => {
        try {
          await pipeline(stream, file);
        } catch (error) {
          if (!(error instanceof BodyBroken)) throw error;
          broken = error;
        }
      }),
    );
    const { size: size_bytes } = await stat(path);
    const received_bytes = await addChunk(app, session, { path, offset, size_bytes });
    if (broken) throw broken;
    return received_bytes;
  });
}

function largest({ catalog }: ChunkParts, { size_bytes }: UploadSession): number {
  const { file_bytes_max } = catalog.current.settings.files;
  return size_bytes === null ? file_bytes_max : Number(size_bytes);
}

function tooLong(app: ChunkParts, { size_bytes }: UploadSession): ApiError {
  if (size_bytes === null) return tooLargeFile(app);
  return new ApiError('too_large', `The file has more bytes than the ${size_bytes} that were announced.`);
}

type Chunk = { path: string; offset: number; size_bytes: number };

/** Another request may add the same bytes meanwhile, at another node. */
const tries_max = 5;

/** Adds what the session does not have yet: bytes that come again are skipped, as their answer may have been lost. */
async function addChunk(app: ChunkParts, session: UploadSession, chunk: Chunk): Promise<bigint> {
  const { path, offset } = chunk;
  let { received_bytes } = session;
  for (let tries = 0; tries < tries_max; tries += 1) {
    refuseGap(app, session, received_bytes, offset);
    const start_bytes = Number(received_bytes);
    const skip_bytes = start_bytes - offset;
    const size_bytes = chunk.size_bytes - skip_bytes;
    if (size_bytes <= 0) return received_bytes;
    const limits = {
      session_bytes_max: largest(app, session),
      account_bytes_max: app.catalog.current.settings.files.account_bytes_max,
    };
    const part = { path, skip_bytes, size_bytes, start_bytes };
    const added = await addPart(app, session, part, limits, new Date(app.clock.now()));
    received_bytes = added.received_bytes;
    switch (added.outcome) {
      case 'added':
        return received_bytes;
      case 'misplaced':
        continue;
      case 'too_long':
        throw tooLong(app, session);
      case 'too_much':
        throw refusal(app, 'too_much');
      case 'too_many':
        throw new ApiError('too_large', 'The upload has 10,000 chunks. Begin another one, with larger chunks.');
      default:
        throw refusal(app, 'ended');
    }
  }
  throw new ApiError('rate_limit', 'Other requests add to this upload at the same time. Try again.', {
    headers: { 'retry-after': '1' },
  });
}

/** Throws ApiError 400 for a chunk that begins after what has arrived. */
function refuseGap(app: ChunkParts, session: UploadSession, received_bytes: bigint, offset: number): void {
  if (BigInt(offset) <= received_bytes) return;
  const message = `The chunk begins at byte ${offset}, but ${received_bytes} have arrived. Go on there.`;
  const headers = stateHeaders(app, session, received_bytes);
  throw new ApiError('invalid_request', message, { headers, param: 'x-goog-upload-offset' });
}

/** Writes a stream of at most `bytes_max` into a file of the spool; answers its path. */
export function spooled(spool: Spool, stream: Readable, { bytes_max, tooLarge }: StreamLimits): Promise<string> {
  const bounded = async function* (source: Readable) {
    let size_bytes = 0;
    for await (const chunk of source) {
      const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk);
      size_bytes += bytes.length;
      if (size_bytes > bytes_max) throw tooLarge();
      yield bytes;
    }
  };
  return spool.add((file) => pipeline(stream, bounded, file));
}
