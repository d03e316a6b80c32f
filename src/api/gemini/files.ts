import { findUpload, findUploadByName } from '../../accounts/caller-files.ts';
import { keysSeenBy } from '../../accounts/limited-keys.ts';
import { ApiError } from '../../errors.ts';
import { deleteFile, listFiles, type CallerFile } from '../../files/files.ts';
import { reading, type ReadParts } from '../../db/reads.ts';
import type { Answer, Call, Endpoint, ParameterDocs } from '../../http/endpoint.ts';
import { wholeNumber } from '../../http/query.ts';
import { isId } from '../../lib/ids.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Storage } from '../../storage/storage.ts';
import { gemini_errors } from '../../styles/gemini/errors.ts';
import { geminiFile } from '../file-views.ts';
import { serveStored } from '../files.ts';
import { limited_key_docs } from '../schemas.ts';
import { unknownPageToken } from './page-token.ts';

/** The files of an account as the SDKs of Gemini read and delete them. */

/** The parts of the app that these calls take. */
export type GeminiFileParts = ReadParts & {
  readonly clock: Clock;
  readonly storage: Storage;
  base_url(): string;
};

/** As of Google's own service. */
const page_size_max = 100;
const page_size_default = 10;

const base = { format: gemini_errors, lenient_query: true } as const;

const name: Record<string, ParameterDocs> = {
  name: { description: 'The name of a file, without `files/`.', schema: { type: 'string' } },
};

const list_files: Endpoint<GeminiFileParts> = {
  ...base,
  method: 'GET',
  path: '/v1beta/files',
  docs: {
    tag: 'Files',
    summary: "List files in Gemini's style",
    description: `The files of the account, newest first, whatever style they were uploaded in. ${limited_key_docs}`,
    query: {
      pageSize: {
        description: 'Number of files.',
        schema: { type: 'integer', minimum: 1, maximum: page_size_max, default: page_size_default },
      },
      pageToken: { description: 'The `nextPageToken` of the page before.', schema: { type: 'string' } },
    },
    responses: { 200: { description: '`files`, and `nextPageToken` if there are more.' } },
  },
  handle: answerList,
};

async function answerList(app: GeminiFileParts, { caller, query, gone }: Call): Promise<Answer> {
  const token = query.get('pageToken') ?? '';
  if (token !== '' && !isId('file', token)) throw unknownPageToken();
  const db = reading(app, { key: caller.account.id, gone });
  const filter = {
    ...(await keysSeenBy(db, caller)),
    account_id: caller.account.id,
    limit: wholeNumber(query, 'pageSize', { min: 1, max: page_size_max }) ?? page_size_default,
    order: 'desc',
    after: token === '' ? undefined : token,
    purpose: undefined,
  } as const;
  const { files, has_more } = await listFiles(db, filter, new Date(app.clock.now()));
  const base_url = app.base_url();
  const next = has_more ? files.at(-1)?.id : undefined;
  return {
    status: 200,
    body: {
      files: files.map((file) => geminiFile(file, base_url)),
      ...(next !== undefined && { nextPageToken: next }),
    },
  };
}

const download_suffix = ':download';

const get_file: Endpoint<GeminiFileParts> = {
  ...base,
  method: 'GET',
  path: '/v1beta/files/{name}',
  docs: {
    tag: 'Files',
    summary: "Get a file in Gemini's style",
    description: 'With `:download` after the name, its bytes; supports Range requests.',
    params: name,
    responses: { 200: { description: 'The file, or its bytes.' }, 206: { description: 'A part of its bytes.' } },
    errors: [404],
  },
  handle: (app, call) => answerFile(app, call, call.params['name'] ?? ''),
};

async function answerFile(app: GeminiFileParts, call: Call, file_name: string): Promise<Answer> {
  if (file_name.endsWith(download_suffix)) return download(app, call, file_name.slice(0, -download_suffix.length));
  return { status: 200, body: geminiFile(await find(app, call, file_name), app.base_url()) };
}

async function download(app: GeminiFileParts, call: Call, file_name: string): Promise<Answer> {
  const { method, headers, request_id } = call;
  const file = await find(app, call, file_name);
  const reply = await serveStored(app.storage, { method, key: file.storage_key, headers, request_id }, 0);
  if (!reply) throw unknownFile(file_name);
  const body = reply.stream ?? reply.body;
  return { status: reply.status, headers: reply.headers, ...(body !== undefined && { body }) };
}

const delete_file: Endpoint<GeminiFileParts> = {
  ...base,
  method: 'DELETE',
  path: '/v1beta/files/{name}',
  docs: {
    tag: 'Files',
    summary: "Delete a file in Gemini's style",
    description: 'Its bytes are deleted for good.',
    params: name,
    responses: { 200: { description: 'The file is deleted.' } },
    errors: [404],
  },
  handle: (app, call) => answerDelete(app, call, call.params['name'] ?? ''),
};

async function answerDelete(app: GeminiFileParts, call: Call, file_name: string): Promise<Answer> {
  const { account_id, id } = await find(app, call, file_name);
  if (!(await deleteFile(app, { account_id, id }, new Date(app.clock.now())))) throw unknownFile(file_name);
  return { status: 200, body: {} };
}

/**
 * Answers a call of /v1/files in Gemini's style if it comes with the header of its SDKs: with version v1, their files have
 * the same paths as those of other styles.
 */
export function orInGemini<App extends GeminiFileParts>(
  kind: 'list' | 'get' | 'delete',
  handle: (app: App, call: Call) => Promise<Answer>,
): (app: App, call: Call) => Promise<Answer> {
  return (app, call) => {
    if (call.headers['x-goog-api-key'] === undefined) return handle(app, call);
    const file_name = call.params['id'] ?? '';
    switch (kind) {
      case 'list':
        return answerList(app, call);
      case 'get':
        return answerFile(app, call, file_name);
      case 'delete':
        return answerDelete(app, call, file_name);
    }
  };
}

/** An upload that the caller reaches, by its id or by the name that it was given. */
async function find({ db, clock }: GeminiFileParts, { caller }: Call, file_name: string): Promise<CallerFile> {
  const now = new Date(clock.now());
  const file = isId('file', file_name)
    ? await findUpload(db, caller, file_name, now)
    : is_name.test(file_name)
      ? await findUploadByName(db, caller, file_name, now)
      : undefined;
  if (!file) throw unknownFile(file_name);
  return file;
}

/** A name of the caller's own choice: up to 40 lower-case letters, digits and dashes, none at its ends. */
export const is_name = /^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$/;

function unknownFile(file_name: string): ApiError {
  const shown = JSON.stringify(`files/${file_name.slice(0, 60)}`);
  return new ApiError('not_found', `There is no file ${shown}.`, { param: 'name', code: 'file_not_found' });
}

export const gemini_files: readonly Endpoint<GeminiFileParts>[] = [list_files, get_file, delete_file];
