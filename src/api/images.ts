import type { Storage } from '../storage/storage.ts';
import { own } from '../catalog/input-schema.ts';
import { ApiError } from '../errors.ts';
import { readBytes } from '../lib/read-bytes.ts';
import { edit_parameters, image_parameters } from '../styles/media-parameters/parameters.ts';
import { linkOutputs, type LinkParts } from '../tasks/outputs.ts';
import type { StoredFile, Task } from '../tasks/task.ts';
import { cost_headers } from './chat.ts';
import type { Answer, Call, Endpoint } from '../http/endpoint.ts';
import {
  begin,
  body_limit_bytes,
  costHeaders,
  filesGone,
  finalTask,
  idempotency_header,
  task_headers,
  wait_query,
  type MediaCall,
  type MediaCallParts,
} from './media-call.ts';
import type { MediaInput } from './media-input.ts';
import { edits_body, edits_form, images_answer, images_body } from './media-schemas.ts';
import { completions_errors } from '../styles/completions/errors.ts';

/** The parts of the app that making images takes. */
type Parts = MediaCallParts & LinkParts;

/** Images in the form of the SDKs. */

const image_call: MediaCall = {
  kind: 'image',
  makes_text: false,
  parameters: image_parameters,
  required: [],
  own: ['response_format'],
  check: checkForm,
};

const edited: MediaCall = { ...image_call, parameters: edit_parameters, check: checkEdit };

const responses = {
  200: { description: 'The images.', schema: images_answer, headers: { ...task_headers, ...cost_headers } },
  502: { description: 'The model failed. The message names the task, which costs nothing.' },
  504: { description: 'Not finished in time. The task continues: its id is in `x-task-id`.' },
};

const common = {
  method: 'POST',
  window: 'generate',
  format: completions_errors,
  body_limit_bytes,
  lenient_query: true,
} as const;

export const generate_images: Endpoint<Parts> = {
  ...common,
  path: '/v1/images/generations',
  docs: {
    tag: 'Media for SDKs',
    summary: 'Create images',
    description: 'Runs a task like POST /v1/generate, waits for it, and answers in the format of the OpenAI SDKs.',
    query: wait_query,
    headers: idempotency_header,
    body: {
      schema: images_body,
      examples: { image: { model: 'sandbox/image', prompt: 'a red bicycle', size: '512x512' } },
    },
    responses,
    errors: [402, 403, 404, 409, 422],
  },
  handle: (app, call) => answer(app, call, image_call),
};

export const edit_images: Endpoint<Parts> = {
  ...common,
  path: '/v1/images/edits',
  form: 'or JSON',
  docs: {
    tag: 'Media for SDKs',
    summary: 'Edit images',
    query: wait_query,
    headers: idempotency_header,
    body: { schema: edits_body, form_schema: edits_form },
    responses,
    errors: [402, 403, 404, 409, 422],
  },
  handle: (app, call) => answer(app, call, edited),
};

async function answer(app: Parts, call: Call, media_call: MediaCall): Promise<Answer> {
  const begun = await begin(app, call, media_call);
  const task = await finalTask(app, call, begun);
  const [first] = task.files;
  const size = first?.item.width === undefined ? {} : { size: `${first.item.width}x${first.item.height}` };
  const body = {
    created: Math.floor(task.created_at.getTime() / 1000),
    data: await imagesOf(app, task, begun.response_format),
    ...size,
    output_format: first?.item.content_type.replace('image/', '') ?? 'png',
  };
  return { status: 200, body, headers: { ...begun.headers, ...costHeaders(task) } };
}

const forms: readonly unknown[] = [undefined, null, 'url', 'b64_json'];

function checkForm({ parameters }: MediaInput): void {
  if (forms.includes(own(parameters, 'response_format'))) return;
  throw new ApiError('invalid_request', 'response_format must be "url" or "b64_json".', { param: 'response_format' });
}

function checkEdit(input: MediaInput): void {
  checkForm(input);
  const { image = null, images = null } = input.parameters;
  if (image === null && images === null)
    throw new ApiError('invalid_request', 'image is required.', { param: 'image' });
}

/** Base64 of all images together is a third more, and all in memory: what is larger is told by its links alone. */
const inline_bytes_max = 50_000_000;

async function imagesOf(app: Parts, task: Task, response_format: unknown): Promise<object[]> {
  if (task.files_removed_at) throw filesGone(task);
  const links = linkOutputs(app, task.files, new Date(app.clock.now()));
  const size_bytes = links.reduce((sum, item) => sum + item.size_bytes, 0);
  if (response_format === 'url' || size_bytes > inline_bytes_max) return links.map(({ url }) => ({ url }));
  const images: object[] = [];
  for (const [index, file] of task.files.entries()) {
    const b64_json = (await bytesOf(app, task, file)).toString('base64');
    images.push(response_format === 'b64_json' ? { b64_json } : { url: links[index]?.url, b64_json });
  }
  return images;
}

async function bytesOf({ storage }: { storage: Storage }, task: Task, { key }: StoredFile): Promise<Buffer> {
  const opened = await storage.open(key);
  if (!opened) throw filesGone(task);
  return readBytes(opened.stream, opened.size_bytes);
}
