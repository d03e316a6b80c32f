import { callerOfKey, type Caller } from '../../accounts/authenticate.ts';
import { checkKeyRules } from '../../accounts/key-rules.ts';
import { isObject, type JsonObject } from '../../catalog/model.ts';
import { ApiError } from '../../errors.ts';
import type { CallerFile } from '../../files/files.ts';
import { takeTempFiles } from '../../files/temp-files.ts';
import { withSpool } from '../../files/spool.ts';
import { isUploadAddress, uploadAddress, upload_path } from '../../files/upload-address.ts';
import { beginSession, findUploadSession, type SessionName, type UploadSession } from '../../files/upload-sessions.ts';
import type { Answer, Call, Endpoint, PublicCall, RequestHead } from '../../http/endpoint.ts';
import { plainName } from '../../http/form.ts';
import { parseJsonObject } from '../../http/json.ts';
import { readRelated, relatedBoundary } from '../../http/related.ts';
import { assert } from '../../lib/assert.ts';
import { readBytes } from '../../lib/read-bytes.ts';
import { gemini_errors } from '../../styles/gemini/errors.ts';
import { camelCase } from '../../styles/gemini/names.ts';
import { mistake, readObject, readText } from '../../styles/fields.ts';
import { scopesOf } from '../../http/scopes.ts';
import { refuseBlocked } from '../blocked.ts';
import { geminiFile } from '../file-views.ts';
import { is_name } from './files.ts';
import { command, continueSession, spooled, type ChunkParts } from './chunks.ts';
import { keepUpload, refusal, tooLargeFile, type KeepParts } from '../keep-upload.ts';

/** Uploads as Google's SDKs do them: in chunks to an address of its own, or at once in a body of two parts. */

/** The parts of the app that these calls take. */
type Parts = ChunkParts & {
  readonly secret: string;
};

const about_bytes_max = 65_536;
const display_name_length_max = 512;

/** Chunks should be multiples of it; any size is taken. */
const granularity_bytes = 262_144;

const base = { format: gemini_errors, lenient_query: true, stream: true } as const;

/** The SDK for Python has version v1 unless it is told another. */
const uploadFile = (path: string, hidden: boolean): Endpoint<Parts> => ({
  ...base,
  method: 'POST',
  path,
  docs: {
    ...(hidden && { hidden }),
    tag: 'Files',
    summary: "Upload a file in Gemini's style",
    description:
      'With `X-Goog-Upload-Protocol: resumable` and `X-Goog-Upload-Command: start`, answers the address for the bytes in `x-goog-upload-url`. With `multipart`, the body is `multipart/related`: JSON, then the file. With `raw`, the body is the file.',
    headers: {
      'x-goog-upload-protocol': {
        description: 'How the bytes come.',
        schema: { enum: ['resumable', 'multipart', 'raw'] },
        example: 'raw',
      },
    },
    body: {
      required: false,
      schema: {
        type: 'object',
        properties: {
          file: { type: 'object', properties: { name: { type: 'string' }, displayName: { type: 'string' } } },
        },
      },
    },
    responses: { 200: { description: '`file`; of `start`, an empty object.' } },
    errors: [403, 409, 422],
  },
  handle: (app, call) => {
    refuseBlocked(call.caller);
    const protocol = headerOf(call, 'x-goog-upload-protocol') ?? call.query.get('uploadType') ?? '';
    switch (protocol.toLowerCase()) {
      case 'resumable':
        return start(app, call);
      case 'multipart':
        return uploadRelated(app, call);
      case 'raw':
      case 'media':
        return uploadRaw(app, call);
      default:
        throw new ApiError('invalid_request', 'Set the header X-Goog-Upload-Protocol to resumable, multipart or raw.', {
          param: 'x-goog-upload-protocol',
        });
    }
  },
});

function headerOf({ headers }: Pick<PublicCall, 'headers'>, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** Begins a session, whose address any node knows. */
async function start(app: Parts, call: Call): Promise<Answer> {
  const words = command(call);
  if (words.length !== 1 || words[0] !== 'start') {
    throw mistake(
      'x-goog-upload-command',
      'must be start at this address; the bytes go to the address that it answers',
    );
  }
  const bytes = await readStream(call)({ bytes_max: about_bytes_max, tooLarge: tooLargeAbout }, (stream) =>
    readBytes(stream, about_bytes_max),
  );
  const about = readAbout(bytes.length === 0 ? {} : parseJsonObject(bytes), call);
  const size_bytes = announcedSize(call);
  const { file_bytes_max, keep_ms, account_bytes_max, account_files_max } = app.catalog.current.settings.files;
  if (size_bytes !== null && size_bytes > file_bytes_max) throw tooLargeFile(app);
  const { caller } = call;
  const session = await beginSession(
    app.db,
    {
      account_id: caller.account.id,
      key_id: caller.key.id,
      kind: 'chunks',
      filename: about.filename,
      name: about.name ?? null,
      purpose: 'user_data',
      size_bytes,
      keep_s: Math.max(1, Math.floor(keep_ms / 1000)),
    },
    { files_max: account_files_max, bytes_max: account_bytes_max },
    new Date(app.clock.now()),
  );
  if (typeof session === 'string') throw refusal(app, session);
  const url = uploadAddress(app.secret, publicUrl(app, call), session);
  const headers = {
    'x-goog-upload-url': url,
    'x-goog-upload-control-url': url,
    'x-goog-upload-status': 'active',
    'x-goog-upload-chunk-granularity': String(granularity_bytes),
  };
  return { status: 200, headers, body: {} };
}

/** The bytes that a header announces; null if none does. */
function announcedSize(call: Call): number | null {
  const name = 'x-goog-upload-header-content-length';
  const text = headerOf(call, name) ?? headerOf(call, 'x-goog-upload-raw-size');
  if (text === undefined) return null;
  const size_bytes = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (size_bytes === 0) throw mistake(name, 'must be a whole number of at least 1: empty files are not stored');
  return size_bytes;
}

/**
 * Returns the base URL at which this caller reaches the service: SDKs in Python call the address as it is. Without a configured one it is the host
 * that the caller has just called; whoever sends a wrong one answers itself.
 */
function publicUrl({ config, catalog, base_url }: Parts, call: Call): string {
  const configured = config.base_url ?? catalog.current.settings.base_url;
  const { host } = call.headers;
  if (configured !== undefined || host === undefined || host === '') return base_url();
  const scheme = headerOf(call, 'x-forwarded-proto') === 'https' ? 'https' : 'http';
  return `${scheme}://${host}`;
}

type About = { filename: string; name: string | undefined };

/** `{ file: { name, displayName } }`, and the name of the file in a header. */
function readAbout(body: Record<string, unknown>, call: Call): About {
  const file = inCamelCase((isObject(body) && readObject(body, 'file', 'file')) || {});
  const text = readText(file, 'name', 'file.name')?.replace(/^files\//, '');
  const name = text === '' ? undefined : text;
  if (name !== undefined && !is_name.test(name)) {
    throw mistake('file.name', 'must be files/ and up to 40 lower-case letters, digits and dashes, none at its ends');
  }
  // A name that is taken would say that another project has such a file.
  if (name !== undefined && call.caller.key.is_limited)
    throw mistake(
      'file.name',
      'must be left out: names are of the whole account, and this key is limited to its project',
    );
  const display_name = plainText(readText(file, 'displayName', 'file.displayName') ?? '');
  const filename = display_name === '' ? plainName(headerOf(call, 'x-goog-upload-file-name')) : display_name;
  return { filename, name };
}

function inCamelCase(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [camelCase(key), value ?? null]));
}

function plainText(text: string): string {
  const plain = text
    .toWellFormed()
    .replaceAll(/\p{Cc}/gu, '')
    .trim();
  return plain.slice(0, display_name_length_max).toWellFormed();
}

async function uploadRelated(app: Parts, call: Call): Promise<Answer> {
  const boundary = relatedBoundary(call.headers['content-type']);
  return uploadWhole(app, call, (limits, add) =>
    readStream(call)(limits, async (body) => {
      const { about, file } = await readRelated(body, boundary, add);
      return { path: file, about: readAbout(parseJsonObject(about), call) };
    }),
  );
}

function uploadRaw(app: Parts, call: Call): Promise<Answer> {
  const about = readAbout({}, call);
  return uploadWhole(app, call, (limits, add) =>
    readStream(call)(limits, async (body) => ({ path: await add(body), about })),
  );
}

type Add = Parameters<typeof readRelated<string>>[2];
type Limits = { bytes_max: number; tooLarge: () => ApiError };

/** Stores a file that comes in one request. */
async function uploadWhole(
  app: Parts,
  call: Call,
  receive: (limits: Limits, add: Add) => Promise<{ path: string; about: About }>,
): Promise<Answer> {
  const { file_bytes_max, keep_ms } = app.catalog.current.settings.files;
  const { caller } = call;
  const permit = takeTempFiles(app, caller.account.id);
  try {
    return await withSpool(app.config.data_dir, async (spool) => {
      const limits = { bytes_max: file_bytes_max + 2 * about_bytes_max, tooLarge: () => tooLargeFile(app) };
      const add: Add = (stream) => spooled(spool, stream, { bytes_max: file_bytes_max, tooLarge: limits.tooLarge });
      const { path, about } = await receive(limits, add);
      const file = await keepUpload(app, caller, { ...about, path, purpose: 'user_data', keep_ms, field: 'file' });
      return { status: 200, headers: { 'x-goog-upload-status': 'final' }, body: fileBody(app, file) };
    });
  } finally {
    permit.release();
  }
}

function fileBody(app: KeepParts & Pick<Parts, 'base_url'>, file: CallerFile): object {
  return { file: geminiFile(file, app.base_url()) };
}

function readStream(call: PublicCall) {
  assert(call.readStream, 'an endpoint with a stream can read it');
  return call.readStream;
}

function tooLargeAbout(): ApiError {
  return new ApiError('too_large', `The JSON about a file may have at most ${about_bytes_max / 1024} KiB.`);
}

/** Whoever has the address may go on: SDKs in Python send no key there. */
const continue_upload: Endpoint<Parts> = {
  ...base,
  method: 'POST',
  path: `${upload_path}/{account}/{id}`,
  public: true,
  docs: {
    tag: 'Files',
    summary: 'Continue an upload',
    description:
      'The address of `x-goog-upload-url`, which needs no key: it is signed for this upload. `X-Goog-Upload-Command` is `upload`, `upload, finalize`, `finalize`, `query` or `cancel`.',
    params: {
      account: { description: 'From the address.', schema: { type: 'string' } },
      id: { description: 'From the address.', schema: { type: 'string' } },
    },
    query: { sig: { description: 'From the address.', schema: { type: 'string' }, required: true } },
    headers: {
      'x-goog-upload-command': {
        description: 'What to do.',
        schema: { type: 'string' },
        example: 'upload, finalize',
      },
      'x-goog-upload-offset': {
        description: 'Where the chunk begins in the file.',
        schema: { type: 'integer' },
        example: 0,
      },
    },
    responses: {
      200: { description: '`file` once it is whole. `x-goog-upload-status` and `-size-received` say how far it is.' },
    },
    errors: [401, 403, 404, 409, 413, 422, 429],
  },
  admit: (app, head) => {
    if (!isUploadAddress(app.secret, nameIn(head), head.query.get('sig'))) throw unknownUpload();
  },
  handle: async (app, call) => {
    const session = await findUploadSession(app.db, nameIn(call));
    if (session?.kind !== 'chunks') throw unknownUpload();
    const caller = await ownerOf(app, call, session);
    return continueSession(app, call, caller, session);
  },
};

function nameIn({ params }: RequestHead): SessionName {
  return { account_id: params['account'] ?? '', id: params['id'] ?? '' };
}

/** A key that has ended, or may not be used from here, ends what it has begun. */
async function ownerOf({ db }: Parts, { address }: PublicCall, session: UploadSession): Promise<Caller> {
  const stopped = { 'x-goog-upload-status': 'final' };
  const caller = await callerOfKey(db, session.account_id, session.key_id);
  if (!caller) throw new ApiError('unauthenticated', 'The API key of this upload has ended.', { headers: stopped });
  const { rules } = caller.key;
  if (rules) checkKeyRules(rules, { of_call: scopesOf({ method: 'POST', path: upload_path }), address });
  refuseBlocked(caller);
  return caller;
}

function unknownUpload(): ApiError {
  const message = 'There is no such upload: it has expired, or its address is not complete.';
  return new ApiError('not_found', message, { headers: { 'x-goog-upload-status': 'final' } });
}

export const gemini_uploads: readonly Endpoint<Parts>[] = [
  uploadFile(upload_path, false),
  uploadFile('/upload/v1/files', true),
  continue_upload,
];
