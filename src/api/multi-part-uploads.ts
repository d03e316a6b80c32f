import { stat } from 'node:fs/promises';
import { Type } from 'typebox';
import { reaches } from '../accounts/limited-keys.ts';
import { isObject, type JsonObject } from '../catalog/model.ts';
import { ApiError } from '../errors.ts';
import { takeTempFiles } from '../files/temp-files.ts';
import {
  addPart,
  beginSession,
  cancelSession,
  findUploadSession,
  listParts,
  type NewPart,
  type UploadPart,
  type UploadSession,
} from '../files/upload-sessions.ts';
import { megabyte } from '../http/body.ts';
import type { Answer, Call, Endpoint, ParameterDocs } from '../http/endpoint.ts';
import { plainName } from '../http/form.ts';
import { withForm } from '../http/spooled-form.ts';
import { isId } from '../lib/ids.ts';
import { mistake, needName, readCount, readList, readObject, readText } from '../styles/fields.ts';
import { refuseBlocked } from './blocked.ts';
import { completions_view, unixTime } from './file-views.ts';
import { completeSession, fileOf, refusal, tooLargeFile, type KeepParts } from './keep-upload.ts';
import { uploaded_file } from './schemas.ts';
import { checkPurpose, expires_s_min } from './uploads.ts';

/** Files that come in parts, each in a request of its own, in any order and at any nodes (the Uploads of OpenAI's SDKs). */

/** As of the style's own service. */
const part_bytes_max = 64 * megabyte;

const parts_max = 10_000;

const id: Record<string, ParameterDocs> = { id: { description: 'Upload id.', schema: { type: 'string' } } };

const upload_view = Type.Object({
  id: Type.String({ description: '`upload_` + 26 characters.' }),
  object: Type.Literal('upload'),
  bytes: Type.Integer({ description: 'Size of the file, as announced.' }),
  created_at: Type.Integer({ description: 'Seconds since 1970.' }),
  expires_at: Type.Integer({ description: 'When the upload expires, seconds since 1970: an hour after it began.' }),
  filename: Type.String(),
  purpose: Type.String(),
  status: Type.Enum(['pending', 'completed', 'cancelled', 'expired']),
  file: Type.Union([uploaded_file, Type.Null()], { description: 'The file, once the upload is completed.' }),
});

const upload_docs = { 200: { description: 'The upload.', schema: upload_view } };

const base = { lenient_query: true } as const;

const create_upload: Endpoint<KeepParts> = {
  ...base,
  method: 'POST',
  path: '/v1/uploads',
  docs: {
    tag: 'Files',
    summary: 'Begin an upload in parts',
    description: 'For large files: the parts may be sent at once, and again. It counts in the limits of the account.',
    body: {
      schema: Type.Object({
        bytes: Type.Integer({ minimum: 1, description: 'Size of the whole file.' }),
        filename: Type.String(),
        purpose: Type.String({ description: 'A label of your own.' }),
        mime_type: Type.Optional(Type.String({ description: 'Ignored: the type is determined from the bytes.' })),
        expires_after: Type.Optional(
          Type.Object({ anchor: Type.Literal('created_at'), seconds: Type.Integer({ minimum: expires_s_min }) }),
        ),
      }),
      examples: {
        pdf: { bytes: 150_000_000, filename: 'book.pdf', purpose: 'user_data', mime_type: 'application/pdf' },
      },
    },
    responses: upload_docs,
    errors: [403, 413],
  },
  handle: async (app, { caller, body = {} }) => {
    refuseBlocked(caller);
    const fields = readFields(app, isObject(body) ? body : {});
    const { account_bytes_max: bytes_max, account_files_max: files_max } = app.catalog.current.settings.files;
    const session = await beginSession(
      app.db,
      { ...fields, account_id: caller.account.id, key_id: caller.key.id, kind: 'parts', name: null },
      { files_max, bytes_max },
      new Date(app.clock.now()),
    );
    if (typeof session === 'string') throw refusal(app, session);
    return answerUpload(app, session);
  },
};

function readFields(app: KeepParts, body: JsonObject) {
  const { file_bytes_max, keep_ms } = app.catalog.current.settings.files;
  const filename = plainName(needName(body, 'filename', 'filename'));
  const purpose = needName(body, 'purpose', 'purpose');
  checkPurpose(purpose);
  readText(body, 'mime_type', 'mime_type');
  const size_bytes = readCount(body, 'bytes', 'bytes', 1);
  if (size_bytes === undefined) throw mistake('bytes', 'is required');
  if (size_bytes > file_bytes_max) throw tooLargeFile(app);
  const after = readObject(body, 'expires_after', 'expires_after');
  const anchor = after && readText(after, 'anchor', 'expires_after.anchor');
  if (after && anchor !== 'created_at') throw mistake('expires_after.anchor', 'must be "created_at"');
  const requested_s = after && readCount(after, 'seconds', 'expires_after.seconds', expires_s_min);
  if (after && requested_s === undefined) throw mistake('expires_after.seconds', 'is required');
  const keep_s = Math.min(requested_s ?? Infinity, Math.max(1, Math.floor(keep_ms / 1000)));
  return { filename, purpose, size_bytes, keep_s };
}

const add_part: Endpoint<KeepParts> = {
  ...base,
  method: 'POST',
  path: '/v1/uploads/{id}/parts',
  form: true,
  docs: {
    tag: 'Files',
    summary: 'Add a part to an upload',
    description: 'Parts may come in any order, also at once: the call that completes the upload names them in theirs.',
    params: id,
    body: {
      content_type: 'multipart/form-data',
      examples: { part: { data: 'part-1' } },
      schema: Type.Object({ data: Type.String({ format: 'binary', description: 'At most 64 MB.' }) }),
    },
    responses: {
      200: {
        description: 'The part.',
        schema: Type.Object({
          id: Type.String(),
          object: Type.Literal('upload.part'),
          created_at: Type.Integer(),
          upload_id: Type.String(),
        }),
      },
    },
    errors: [403, 404, 413],
  },
  handle: async (app, call) => {
    refuseBlocked(call.caller);
    const session = await findPending(app, call);
    return withForm(app, call, { files_max: 1, file_bytes_max: part_bytes_max }, async ({ files }) => {
      const [data] = files;
      if (data?.name !== 'data') throw mistake('data', 'is missing: the form needs the bytes of the part in it');
      const { size: size_bytes } = await stat(data.value);
      if (size_bytes === 0) throw mistake('data', 'is empty');
      const part = { path: data.value, skip_bytes: 0, size_bytes, start_bytes: null };
      return answerPart(app, session, part);
    });
  },
};

/** Twice the announced size: parts whose responses were lost are sent again, and only the last call tells which count. */
async function answerPart(app: KeepParts, session: UploadSession, part: NewPart): Promise<Answer> {
  const session_bytes_max = 2 * Number(session.size_bytes);
  const { account_bytes_max } = app.catalog.current.settings.files;
  const now = new Date(app.clock.now());
  const added = await addPart(app, session, part, { session_bytes_max, account_bytes_max }, now);
  switch (added.outcome) {
    case 'added':
      return {
        status: 200,
        body: { id: added.id, object: 'upload.part', created_at: unixTime(now), upload_id: session.id },
      };
    case 'too_long':
      throw mistake(
        'data',
        `exceeds the announced size of ${session.size_bytes} bytes, with all parts that came before`,
      );
    case 'too_many':
      throw mistake('data', `is one part too many: an upload may have ${parts_max}`);
    case 'too_much':
      throw refusal(app, 'too_much');
    default:
      throw refusal(app, 'ended');
  }
}

const complete_upload: Endpoint<KeepParts> = {
  ...base,
  method: 'POST',
  path: '/v1/uploads/{id}/complete',
  docs: {
    tag: 'Files',
    summary: 'Complete an upload',
    description: 'Makes the file. The same call again answers the same file. After an error the upload goes on.',
    params: id,
    body: {
      schema: Type.Object({
        part_ids: Type.Array(Type.String(), { description: 'The parts in the order of the file.' }),
        md5: Type.Optional(Type.String({ description: 'Of the whole file, in hex.' })),
      }),
      examples: { parts: { part_ids: ['PART_ID_1', 'PART_ID_2'] } },
    },
    responses: upload_docs,
    errors: [403, 404, 413, 422],
  },
  handle: async (app, call) => {
    refuseBlocked(call.caller);
    const { caller, body = {} } = call;
    const { part_ids, md5 } = readCompletion(isObject(body) ? body : {});
    const session = await find(app, call);
    if (session.state === 'completed') return answerUpload(app, session);
    checkPending(app, session);
    const parts = partsOf(session, await listParts(app.db, session), part_ids);
    const permit = takeTempFiles(app, caller.account.id);
    try {
      await completeSession(app, caller, { session, parts, md5, field: 'file' });
    } finally {
      permit.release();
    }
    return answerUpload(app, await find(app, call));
  },
};

function readCompletion(body: JsonObject): { part_ids: string[]; md5: string | undefined } {
  const list = readList(body, 'part_ids', 'part_ids') ?? [];
  if (list.length === 0) throw mistake('part_ids', 'is required: the ids of the parts in the order of the file');
  if (list.length > parts_max) throw mistake('part_ids', `may have at most ${parts_max} ids`);
  const part_ids = list.map((each, index) => {
    if (typeof each !== 'string') throw mistake(`part_ids[${index}]`, 'must be the id of a part');
    return each;
  });
  const md5 = readText(body, 'md5', 'md5')?.toLowerCase();
  if (md5 !== undefined && md5 !== '' && !/^[0-9a-f]{32}$/.test(md5)) throw mistake('md5', 'must have 32 hex digits');
  return { part_ids, md5: md5 === '' ? undefined : md5 };
}

/** The parts of these ids, each once, which are together as long as announced. */
function partsOf({ size_bytes }: UploadSession, there: readonly UploadPart[], part_ids: readonly string[]) {
  const part_by_id = new Map(there.map((part) => [part.id, part]));
  const parts = part_ids.map((part_id, index) => {
    const part = part_by_id.get(part_id);
    if (!part) throw mistake(`part_ids[${index}]`, 'names no part of this upload, or one a second time');
    part_by_id.delete(part_id);
    return part;
  });
  const total = parts.reduce((sum, part) => sum + part.size_bytes, 0n);
  if (total === size_bytes) return parts;
  throw mistake('part_ids', `name ${total} bytes, but the upload was announced with ${size_bytes}`);
}

const cancel_upload: Endpoint<KeepParts> = {
  ...base,
  method: 'POST',
  path: '/v1/uploads/{id}/cancel',
  ignores_body: true,
  docs: {
    tag: 'Files',
    summary: 'Cancel an upload',
    description: 'Its parts are removed, and it counts in no limit any more.',
    params: id,
    responses: upload_docs,
    errors: [404],
  },
  handle: async (app, call) => {
    const session = await cancelSession(app, await find(app, call));
    if (!session) throw unknownUpload(call);
    if (session.state === 'completed') {
      throw new ApiError('invalid_request', 'The upload is completed. Delete its file instead.', {
        code: 'upload_ended',
      });
    }
    return answerUpload(app, session);
  },
};

/** An upload of another account, or out of reach of the key, is as unknown as one that never was. */
async function find({ db }: KeepParts, call: Call): Promise<UploadSession> {
  const { caller, params } = call;
  const session_id = params['id'] ?? '';
  const name = { account_id: caller.account.id, id: session_id };
  const session = isId('upload', session_id) ? await findUploadSession(db, name) : undefined;
  if (session?.kind !== 'parts' || !(await reaches(db, caller, session.key_id))) throw unknownUpload(call);
  return session;
}

function unknownUpload({ params }: Call): ApiError {
  const shown = JSON.stringify((params['id'] ?? '').slice(0, 60));
  return new ApiError('not_found', `There is no upload ${shown}.`, { param: 'id' });
}

async function findPending(app: KeepParts, call: Call): Promise<UploadSession> {
  const session = await find(app, call);
  checkPending(app, session);
  return session;
}

function checkPending(app: KeepParts, session: UploadSession): void {
  const status = statusOf(app, session);
  if (status === 'pending') return;
  throw new ApiError('invalid_request', `The upload is ${status}. Begin another one.`, { code: 'upload_ended' });
}

function statusOf({ clock }: Pick<KeepParts, 'clock'>, { state, expires_at }: UploadSession) {
  return state === 'pending' && expires_at.getTime() <= clock.now() ? 'expired' : state;
}

async function answerUpload(app: KeepParts, session: UploadSession): Promise<Answer> {
  const file = await fileOf(app, session);
  const body = {
    id: session.id,
    object: 'upload',
    bytes: Number(session.size_bytes),
    created_at: unixTime(session.created_at),
    expires_at: unixTime(session.expires_at),
    filename: session.filename,
    purpose: session.purpose,
    status: statusOf(app, session),
    file: file ? completions_view.file(file) : null,
  };
  return { status: 200, body };
}

export const multi_part_uploads: readonly Endpoint<KeepParts>[] = [
  create_upload,
  add_part,
  complete_upload,
  cancel_upload,
];
