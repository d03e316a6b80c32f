import type { Storage } from '../storage/storage.ts';
import { own } from '../catalog/input-schema.ts';
import type { JsonObject } from '../catalog/model.ts';
import { ApiError } from '../errors.ts';
import { readBytes } from '../lib/read-bytes.ts';
import { edit_parameters, image_parameters } from '../styles/media-parameters/parameters.ts';
import { linkOutputs, type LinkParts } from '../tasks/outputs.ts';
import type { StoredFile, Task } from '../tasks/task.ts';
import { cost_headers } from './chat.ts';
import type { Answer, Call, Endpoint } from '../http/endpoint.ts';
import { eventsAnswer } from './media-events.ts';
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
import { edits_body, edits_form, images_answer, images_body, variations_form } from './media-schemas.ts';
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
  handle: (app, call) => answer(app, call, image_call, 'image_generation'),
};

export const edit_images: Endpoint<Parts> = {
  ...common,
  path: '/v1/images/edits',
  form: 'or JSON',
  docs: {
    tag: 'Media for SDKs',
    summary: 'Edit images',
    description: 'Runs a task with the images of the call, waits for it, and answers in the format of the OpenAI SDKs.',
    query: wait_query,
    headers: idempotency_header,
    body: {
      schema: edits_body,
      form_schema: edits_form,
      examples: {
        file: { model: 'sandbox/edit', prompt: 'a green bicycle', images: [{ file_id: 'FILE_ID' }] },
      },
    },
    responses,
    errors: [402, 403, 404, 409, 422],
  },
  handle: (app, call) => answer(app, call, edited, 'image_edit'),
};

export const vary_images: Endpoint<Parts> = {
  ...common,
  path: '/v1/images/variations',
  form: true,
  docs: {
    tag: 'Media for SDKs',
    summary: 'Make variations of an image',
    description: 'An edit without a prompt, for models that need none.',
    query: wait_query,
    headers: idempotency_header,
    body: {
      content_type: 'multipart/form-data',
      schema: variations_form,
      examples: { image: { model: 'sandbox/edit', image: 'image.png' } },
    },
    responses,
    errors: [402, 403, 404, 409, 422],
  },
  handle: (app, call) => answer(app, call, edited, 'image_edit'),
};

async function answer(app: Parts, call: Call, media_call: MediaCall, event: string): Promise<Answer> {
  const begun = await begin(app, call, media_call);
  const task = await finalTask(app, call, begun);
  const [first] = task.files;
  const size = first?.item.width === undefined ? {} : { size: `${first.item.width}x${first.item.height}` };
  const headers = { ...begun.headers, ...costHeaders(task) };
  const format = first?.item.content_type.replace('image/', '') ?? 'png';
  if (begun.stream) {
    const images = await imagesOf(app, task, 'b64_json');
    const completed = { type: `${event}.completed`, created_at: createdAt(task), output_format: format, ...size };
    const events = eventsAnswer(images.map((each) => ({ ...completed, ...common_event, ...each })));
    return { status: 200, body: events.body, headers: { ...headers, ...events.headers } };
  }
  const body = {
    created: createdAt(task),
    data: await imagesOf(app, task, begun.response_format),
    ...size,
    output_format: format,
  };
  return { status: 200, body, headers };
}

/** Facts that SDKs expect in an event, and that tasks do not know: the model's own choice, and no tokens. */
const common_event = {
  background: 'auto',
  quality: 'auto',
  usage: {
    input_tokens: 0,
    input_tokens_details: { image_tokens: 0, text_tokens: 0 },
    output_tokens: 0,
    total_tokens: 0,
  },
};

function createdAt({ created_at }: Task): number {
  return Math.floor(created_at.getTime() / 1000);
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

async function imagesOf(app: Parts, task: Task, response_format: unknown): Promise<JsonObject[]> {
  if (task.files_removed_at) throw filesGone(task);
  const links = linkOutputs(app, task.files, new Date(app.clock.now()));
  const size_bytes = links.reduce((sum, item) => sum + item.size_bytes, 0);
  if (response_format === 'url' || size_bytes > inline_bytes_max) return links.map(({ url }) => ({ url }));
  const images: JsonObject[] = [];
  for (const [index, file] of task.files.entries()) {
    const b64_json = (await bytesOf(app, task, file)).toString('base64');
    images.push(response_format === 'b64_json' ? { b64_json } : { url: links[index]?.url ?? null, b64_json });
  }
  return images;
}

async function bytesOf({ storage }: { storage: Storage }, task: Task, { key }: StoredFile): Promise<Buffer> {
  const opened = await storage.open(key);
  if (!opened) throw filesGone(task);
  return readBytes(opened.stream, opened.size_bytes);
}
