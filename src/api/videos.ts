import Type from 'typebox';
import { keysSeenBy, reaches } from '../accounts/limited-keys.ts';
import type { Db } from '../db/database.ts';
import { reading, type ReadParts } from '../db/reads.ts';
import type { Storage } from '../storage/storage.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import { ApiError } from '../errors.ts';
import { isId } from '../lib/ids.ts';
import { video_parameters } from '../styles/media-parameters/parameters.ts';
import { removeOutput, type TaskFileParts } from '../tasks/files.ts';
import { listVideos, loadVideo, type VideoTask } from '../tasks/videos.ts';
import type { Answer, Call, Endpoint, ParameterDocs } from '../http/endpoint.ts';
import { serveStored } from './files.ts';
import {
  begin,
  body_limit_bytes,
  filesGone,
  idempotency_header,
  task_headers,
  type MediaCall,
  type MediaCallParts,
} from './media-call.ts';
import { video, videos_body, videos_form } from './media-schemas.ts';
import { oneOf, wholeNumber } from '../http/query.ts';
import { limited_key_docs, listOf, too_slow } from './schemas.ts';
import { videoView } from './video-view.ts';
import { completions_errors } from '../styles/completions/errors.ts';

/** The parts of the app that making and keeping videos takes. */
type Parts = MediaCallParts & TaskFileParts & ReadParts;

/** Videos in the form of the SDKs: created, looked at until they are completed, and downloaded. */

const filmed: MediaCall = {
  kind: 'video',
  makes_text: false,
  parameters: video_parameters,
  required: [],
  own: [],
};

const id: Record<string, ParameterDocs> = { id: { description: 'Of the video.', schema: { type: 'string' } } };

export const create_video: Endpoint<Parts> = {
  method: 'POST',
  path: '/v1/videos',
  window: 'generate',
  format: completions_errors,
  form: 'or JSON',
  body_limit_bytes,
  lenient_query: true,
  docs: {
    tag: 'Media for SDKs',
    summary: 'Create a video',
    description: 'Creates a task like POST /v1/generate, in the format of the OpenAI SDKs.',
    headers: idempotency_header,
    body: {
      schema: videos_body,
      form_schema: videos_form,
      examples: { video: { model: 'sandbox/video', prompt: 'waves', seconds: '4', size: '854x480' } },
    },
    responses: { 200: { description: 'The video, most likely queued.', schema: video, headers: task_headers } },
    errors: [402, 403, 404, 409, 422, 502, 504],
  },
  handle: async (app, call) => {
    const { created, headers } = await begin(app, call, filmed);
    const { account_id, task_id } = created.ref;
    const created_video = await loadVideo(app.db, account_id, task_id);
    if (!created_video) throw filesGone({ id: task_id }); // of a request that was repeated much later
    return { status: 200, body: view(app, created_video), headers };
  },
};

export const get_video: Endpoint<Parts> = {
  method: 'GET',
  path: '/v1/videos/{id}',
  format: completions_errors,
  lenient_query: true,
  docs: {
    tag: 'Media for SDKs',
    summary: 'Get a video',
    description: 'The state of the task, in the format of the OpenAI SDKs.',
    params: id,
    responses: { 200: { description: 'The video.', schema: video } },
  },
  handle: async (app, call) => ({ status: 200, body: view(app, await find(app.db, call)) }),
};

const limit_max = 100;

export const list_videos: Endpoint<Parts> = {
  method: 'GET',
  path: '/v1/videos',
  format: completions_errors,
  lenient_query: true,
  docs: {
    tag: 'Media for SDKs',
    summary: 'List videos',
    description: `The videos of the account, including those created by POST /v1/generate. ${limited_key_docs}`,
    query: {
      limit: {
        description: 'Number of videos.',
        schema: { type: 'integer', minimum: 1, maximum: limit_max, default: 20 },
      },
      after: { description: 'Videos after this one in the list.', schema: { type: 'string' } },
      order: { description: 'Order by creation time.', schema: { enum: ['asc', 'desc'], default: 'desc' } },
    },
    responses: { 200: { description: 'A page of videos.', schema: listOf(video) }, 504: too_slow },
  },
  handle: handleList,
};

async function handleList(app: Parts, { caller, query, gone }: Call): Promise<Answer> {
  const after = query.get('after');
  if (after !== undefined && !isId('task', after)) {
    throw new ApiError('invalid_request', 'after must be the id of a video.', { param: 'after' });
  }
  const db = reading(app, { key: caller.account.id, gone });
  const { videos, has_more } = await listVideos(db, {
    ...(await keysSeenBy(db, caller)),
    account_id: caller.account.id,
    limit: wholeNumber(query, 'limit', { min: 1, max: limit_max }) ?? 20,
    order: oneOf(query, 'order', ['asc', 'desc']) ?? 'desc',
    after,
  });
  const data = videos.map((each) => view(app, each));
  const [first_id, last_id] = [videos[0]?.id ?? null, videos.at(-1)?.id ?? null];
  return { status: 200, body: { object: 'list', data, has_more, first_id, last_id } };
}

export const get_video_content: Endpoint<Parts> = {
  method: 'GET',
  path: '/v1/videos/{id}/content',
  format: completions_errors,
  lenient_query: true,
  docs: {
    tag: 'Media for SDKs',
    summary: 'Download a video',
    description: 'Supports Range requests.',
    params: id,
    query: { variant: { description: 'The video file.', schema: { enum: ['video'], default: 'video' } } },
    responses: {
      200: { description: 'The video file.', content_type: 'video/mp4' },
      206: { description: 'The requested part of the file.', content_type: 'video/mp4' },
      304: { description: 'The file matches If-None-Match.' },
      409: { description: 'It is not completed.' },
      412: { description: 'The file does not match If-Match.' },
      416: { description: 'The file has no such range.' },
    },
  },
  handle: handleContent,
};

async function handleContent({ db, storage }: { db: Db; storage: Storage }, call: Call): Promise<Answer> {
  const variant = call.query.get('variant') ?? 'video';
  if (variant !== 'video') {
    throw new ApiError('invalid_request', 'The only variant of a video is "video".', { param: 'variant' });
  }
  const stored_video = await find(db, call);
  const [file] = stored_video.files;
  if (!file) {
    const message =
      stored_video.status === 'failed' ? 'The video has failed: there is no file.' : 'The video is not completed yet.';
    throw new ApiError('conflict', message, { code: 'conflict', headers: { 'x-should-retry': 'false' } });
  }
  const { method, headers, request_id } = call;
  const reply = await serveStored(storage, { method, key: file.key, headers, request_id }, 0);
  if (!reply) throw filesGone(stored_video);
  const body = reply.stream ?? reply.body;
  return {
    status: reply.status,
    headers: { ...reply.headers, 'cache-control': 'no-store' },
    ...(body !== undefined && { body }),
  };
}

export const delete_video: Endpoint<Parts> = {
  method: 'DELETE',
  path: '/v1/videos/{id}',
  format: completions_errors,
  lenient_query: true,
  docs: {
    tag: 'Media for SDKs',
    summary: 'Delete a video',
    description: 'Its file is deleted for good. The record of the task stays.',
    params: id,
    responses: {
      200: {
        description: 'The video is deleted.',
        schema: Type.Object({ id: Type.String(), object: Type.Literal('video.deleted'), deleted: Type.Boolean() }),
      },
      409: { description: 'It is neither completed nor failed.' },
    },
  },
  handle: async (app, call) => {
    const { account_id, id: task_id } = await find(app.db, call);
    await removeOutput(app, { account_id, task_id });
    return { status: 200, body: { id: task_id, object: 'video.deleted', deleted: true } };
  },
};

const unchanged = [
  '/v1/videos/{id}/remix',
  '/v1/videos/{id}/edits',
  '/v1/videos/{id}/extensions',
  '/v1/videos/edits',
  '/v1/videos/extensions',
] as const;

/** Changes of a video: these calls name no model, and each model takes a video in a field of its own. */
export const change_videos: Endpoint<unknown>[] = unchanged.map((path) => ({
  method: 'POST',
  path,
  window: 'generate',
  format: completions_errors,
  form: 'or JSON',
  lenient_query: true,
  docs: { tag: 'Media for SDKs', summary: 'Not offered', responses: {}, hidden: true },
  handle: () => {
    const message =
      'Videos are not changed by this call, which names no model: use POST /v1/generate with a model that has a field for a video, and the link of this one.';
    throw new ApiError('invalid_request', message, { code: 'unsupported_call' });
  },
}));

/** A video of another account, or out of reach of the key, is as unknown as one that never was. */
async function find(db: Db, { caller, params }: Call): Promise<VideoTask> {
  const video_id = params['id'] ?? '';
  const row = isId('task', video_id) ? await loadVideo(db, caller.account.id, video_id) : undefined;
  if (row && (await reaches(db, caller, row.key_id))) return row;
  throw new ApiError('not_found', `There is no video ${JSON.stringify(video_id.slice(0, 60))}.`, { param: 'id' });
}

function view({ catalog }: { catalog: CatalogHolder }, task: VideoTask): object {
  return videoView(task, catalog.current.settings.outputs.keep_ms);
}
