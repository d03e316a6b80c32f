import { Type } from 'typebox';
import { findUpload } from '../accounts/caller-files.ts';
import { keysSeenBy } from '../accounts/limited-keys.ts';
import { reading, type ReadParts } from '../db/reads.ts';
import { ApiError, invalidField } from '../errors.ts';
import { deleteFile, listFiles, type CallerFile } from '../files/files.ts';
import { isId } from '../lib/ids.ts';
import { refuseBlocked } from './blocked.ts';
import type { Answer, Call, Endpoint, ParameterDocs, Query } from '../http/endpoint.ts';
import { viewFor } from './file-views.ts';
import { orInGemini, type GeminiFileParts } from './gemini/files.ts';
import { keepUpload, type KeepParts } from './keep-upload.ts';
import { serveStored } from './files.ts';
import type { Form } from '../http/form.ts';
import { oneOf, wholeNumber } from '../http/query.ts';
import { uploaded_file, limited_key_docs, listOf, too_slow } from './schemas.ts';
import { withForm } from '../http/spooled-form.ts';

/** The parts of the app that keeping and reading files takes. */
type Parts = ReadParts & KeepParts;

/** Those that read and delete, too. */
type FileParts = Parts & GeminiFileParts;

/** Files that callers upload, to name them in the inputs of tasks. */

const id: Record<string, ParameterDocs> = { id: { description: 'File id.', schema: { type: 'string' } } };

const list_limit_max = 10_000;
/** The shortest time for which a file may be stored. */
export const expires_s_min = 60;

export const upload_file: Endpoint<Parts> = {
  method: 'POST',
  path: '/v1/files',
  lenient_query: true,
  form: true,
  docs: {
    tag: 'Files',
    summary: 'Upload a file',
    description:
      'An image, audio or video file for the input of a task, or an image, a PDF or a text for chat. Its type is determined from its bytes, not its name. With the header `anthropic-version` all calls of files answer as SDKs of the messages style read them.',
    body: {
      content_type: 'multipart/form-data',
      examples: { pdf: { purpose: 'user_data', file: 'file.pdf' } },
      schema: Type.Object({
        file: Type.String({ format: 'binary' }),
        purpose: Type.Optional(Type.String({ description: 'A label of your own.', default: 'user_data' })),
        'expires_after[anchor]': Type.Optional(Type.Literal('created_at')),
        'expires_after[seconds]': Type.Optional(
          Type.Integer({ minimum: expires_s_min, description: 'At most the time for which files are kept.' }),
        ),
        expires_in_seconds: Type.Optional(
          Type.Integer({ minimum: expires_s_min, description: 'The same, in the messages style.' }),
        ),
      }),
    },
    responses: { 200: { description: 'The file.', schema: uploaded_file } },
    errors: [403, 422],
  },
  handle: handleUpload,
};

/** Keeps the file of a form for the account of the caller. */
export async function handleUpload(app: Parts, call: Call): Promise<Answer> {
  refuseBlocked(call.caller);
  const { file_bytes_max } = app.catalog.current.settings.files;
  return withForm(app, call, { files_max: 1, file_bytes_max }, async (form) => ({
    status: 200,
    body: viewFor(call).file(await keepFormFile(app, call, form)),
  }));
}

async function keepFormFile(app: Parts, call: Call, form: Form<string>): Promise<CallerFile> {
  const [file] = form.files;
  if (file?.name !== 'file') {
    throw new ApiError('invalid_request', 'The form needs a file in the field "file".', { param: 'file' });
  }
  const { keep_ms: keep_ms_max } = app.catalog.current.settings.files;
  const { purpose, keep_ms } = readFields(form, keep_ms_max);
  return keepUpload(app, call.caller, { path: file.value, filename: file.filename, purpose, keep_ms, field: 'file' });
}

const field_names = ['purpose', 'expires_after[anchor]', 'expires_after[seconds]', 'expires_in_seconds'];

function readFields({ fields, lists }: Form<string>, keep_ms_max: number) {
  for (const name of [...fields.keys(), ...lists.keys()]) {
    const shown = JSON.stringify(name.slice(0, 60));
    if (!field_names.includes(name)) throw invalidField(name, `${shown} is not a known field.`);
  }
  const purpose = fields.get('purpose') ?? 'user_data';
  checkPurpose(purpose);
  const anchor = fields.get('expires_after[anchor]') ?? 'created_at';
  if (anchor !== 'created_at')
    throw invalidField('expires_after[anchor]', 'expires_after[anchor] must be "created_at".');
  const name = fields.has('expires_in_seconds') ? 'expires_in_seconds' : 'expires_after[seconds]';
  const seconds = fields.get(name);
  const requested_s = seconds === undefined ? Infinity : /^\d{1,12}$/.test(seconds) ? Number(seconds) : 0;
  if (requested_s < expires_s_min)
    throw invalidField(name, `${name} must be a whole number of at least ${expires_s_min}.`);
  return { purpose, keep_ms: Math.min(requested_s * 1000, keep_ms_max) };
}

/** Throws ApiError 400. */
export function checkPurpose(purpose: string): void {
  if (/^[a-z][a-z0-9_-]{0,63}$/.test(purpose)) return;
  throw invalidField('purpose', 'purpose must be 1 to 64 lower-case letters, digits, dashes and underscores.');
}

export const list_files: Endpoint<FileParts> = {
  method: 'GET',
  path: '/v1/files',
  lenient_query: true,
  docs: {
    tag: 'Files',
    summary: 'List files',
    description: `The files of the account that have not expired. ${limited_key_docs}`,
    query: {
      limit: {
        description: 'Number of files.',
        schema: { type: 'integer', minimum: 1, maximum: list_limit_max, default: list_limit_max },
      },
      order: { description: 'Order by creation time.', schema: { enum: ['asc', 'desc'], default: 'desc' } },
      after: { description: 'Files after this one in the list; also after_id and page.', schema: { type: 'string' } },
      before_id: { description: 'Files before this one in the list.', schema: { type: 'string' } },
      purpose: { description: 'Only files of this purpose.', schema: { type: 'string' } },
    },
    responses: { 200: { description: 'A page of files.', schema: listOf(uploaded_file) }, 504: too_slow },
  },
  handle: orInGemini<FileParts>('list', handleList),
};

async function handleList(app: Parts, call: Call): Promise<Answer> {
  const { caller, query, gone } = call;
  const view = viewFor(call);
  const [after, before] = [['after', 'after_id', 'page'], ['before_id']].map((names) => cursorIn(query, names));
  const order = oneOf(query, 'order', ['asc', 'desc']) ?? 'desc';
  const other = order === 'asc' ? 'desc' : 'asc';
  const db = reading(app, { key: caller.account.id, gone });
  const filter = {
    ...(await keysSeenBy(db, caller)),
    account_id: caller.account.id,
    limit: wholeNumber(query, 'limit', { min: 1, max: list_limit_max }) ?? view.limit_default,
    order: before === undefined ? order : other,
    after: before ?? after,
    purpose: query.get('purpose')?.replaceAll('\0', ''), // no text of the database has it
  } as const;
  const { files, has_more } = await listFiles(db, filter, new Date(app.clock.now()));
  return { status: 200, body: view.list(before === undefined ? files : files.toReversed(), has_more) };
}

/** The id of a file in the first of these parameters that there is. */
function cursorIn(query: Query, names: readonly string[]): string | undefined {
  for (const name of names) {
    const cursor = query.get(name);
    if (cursor === undefined) continue;
    if (!isId('file', cursor)) throw invalidField(name, `${name} must be the id of a file.`);
    return cursor;
  }
  return undefined;
}

export const get_file_record: Endpoint<FileParts> = {
  method: 'GET',
  path: '/v1/files/{id}',
  lenient_query: true,
  docs: {
    tag: 'Files',
    summary: 'Get a file',
    description: 'Returns the record of an uploaded file by its id.',
    params: id,
    responses: { 200: { description: 'The file, without its bytes.', schema: uploaded_file } },
  },
  handle: orInGemini<FileParts>('get', handleGet),
};

async function handleGet(app: Parts, call: Call): Promise<Answer> {
  return { status: 200, body: viewFor(call).file(await find(app, call)) };
}

export const get_file_content: Endpoint<Parts> = {
  method: 'GET',
  path: '/v1/files/{id}/content',
  lenient_query: true,
  docs: {
    tag: 'Files',
    summary: 'Get the bytes of a file',
    description: 'Supports Range requests.',
    params: id,
    responses: {
      200: { description: 'The file.', content_type: 'application/octet-stream' },
      206: { description: 'The requested part of the file.', content_type: 'application/octet-stream' },
      304: { description: 'The file matches If-None-Match.' },
      412: { description: 'The file does not match If-Match.' },
      416: { description: 'The file has no such range.' },
    },
  },
  handle: async (app, call) => {
    const { method, headers, request_id } = call;
    const file = await find(app, call);
    const reply = await serveStored(app.storage, { method, key: file.storage_key, headers, request_id }, 0);
    if (!reply) throw unknownFile(file.id);
    const body = reply.stream ?? reply.body;
    return { status: reply.status, headers: reply.headers, ...(body !== undefined && { body }) };
  },
};

export const delete_file: Endpoint<FileParts> = {
  method: 'DELETE',
  path: '/v1/files/{id}',
  lenient_query: true,
  docs: {
    tag: 'Files',
    summary: 'Delete a file',
    description: 'Tasks that use it and have not started yet will fail.',
    params: id,
    responses: {
      200: {
        description: 'The file is deleted.',
        schema: Type.Object({ id: Type.String(), object: Type.Literal('file'), deleted: Type.Boolean() }),
      },
    },
  },
  handle: orInGemini<FileParts>('delete', handleDelete),
};

async function handleDelete(app: Parts, call: Call): Promise<Answer> {
  const { account_id, id: file_id } = await find(app, call);
  if (!(await deleteFile(app, { account_id, id: file_id }, new Date(app.clock.now())))) throw unknownFile(file_id);
  return { status: 200, body: viewFor(call).deleted(file_id) };
}

async function find({ db, clock }: Parts, { caller, params }: Call): Promise<CallerFile> {
  const file_id = params['id'] ?? '';
  const file = isId('file', file_id) ? await findUpload(db, caller, file_id, new Date(clock.now())) : undefined;
  if (!file) throw unknownFile(file_id);
  return file;
}

function unknownFile(file_id: string): ApiError {
  return new ApiError('not_found', `There is no file ${JSON.stringify(file_id.slice(0, 60))}.`, { param: 'id' });
}
