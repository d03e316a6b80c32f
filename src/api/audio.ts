import type { Storage } from '../storage/storage.ts';
import { own } from '../catalog/input-schema.ts';
import { ApiError } from '../errors.ts';
import { readBytes } from '../lib/read-bytes.ts';
import { speech_parameters, transcription_parameters } from '../styles/media-parameters/parameters.ts';
import type { Task } from '../tasks/task.ts';
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
import { speech_body, transcription, transcription_form } from './media-schemas.ts';
import { completions_errors } from '../styles/completions/errors.ts';

/** Speech and transcripts in the form of the SDKs. */

const spoken: MediaCall = {
  kind: 'audio',
  makes_text: false,
  parameters: speech_parameters,
  required: ['input'],
  own: [],
};

const transcribed: MediaCall = {
  kind: 'audio',
  makes_text: true,
  parameters: transcription_parameters,
  required: ['file'],
  own: [],
  check: ({ parameters }) => void formOf(own(parameters, 'response_format')),
};

const response_headers = { ...task_headers, ...cost_headers };
const failures = {
  502: { description: 'The model failed. The message names the task, which costs nothing.' },
  504: { description: 'Not finished in time. The task continues: its id is in `x-task-id`.' },
};
const errors = [402, 403, 404, 409, 422];

export const speak: Endpoint<MediaCallParts> = {
  method: 'POST',
  path: '/v1/audio/speech',
  window: 'generate',
  format: completions_errors,
  body_limit_bytes,
  lenient_query: true,
  docs: {
    tag: 'Media for SDKs',
    summary: 'Generate speech',
    description: 'Runs a task like POST /v1/generate, waits for it, and returns the file with its content-type.',
    query: wait_query,
    headers: idempotency_header,
    body: {
      schema: speech_body,
      examples: { melody: { model: 'sandbox/audio', input: 'Good morning', voice: 'any' } },
    },
    responses: {
      200: { description: 'The audio file.', content_type: 'application/octet-stream', headers: response_headers },
      ...failures,
    },
    errors,
  },
  handle: answerAudio,
};

async function answerAudio(app: MediaCallParts, call: Call): Promise<Answer> {
  const begun = await begin(app, call, spoken);
  const task = await finalTask(app, call, begun);
  const [file] = task.files;
  const opened = file && !task.files_removed_at ? await app.storage.open(file.key) : undefined;
  if (!file || !opened) throw filesGone(task);
  return {
    status: 200,
    body: opened.stream,
    headers: {
      ...begun.headers,
      ...costHeaders(task),
      'content-type': file.item.content_type,
      'content-length': String(opened.size_bytes),
    },
  };
}

export const transcribe: Endpoint<MediaCallParts> = {
  method: 'POST',
  path: '/v1/audio/transcriptions',
  window: 'generate',
  format: completions_errors,
  form: true,
  lenient_query: true,
  docs: {
    tag: 'Media for SDKs',
    summary: 'Transcribe a recording',
    query: wait_query,
    headers: idempotency_header,
    body: { content_type: 'multipart/form-data', schema: transcription_form },
    responses: {
      200: {
        description: 'The transcript, as `response_format` says.',
        schema: transcription,
        headers: response_headers,
      },
      ...failures,
    },
    errors,
  },
  handle: answerText,
};

const text_bytes_max = 20_000_000;

async function answerText(app: MediaCallParts, call: Call): Promise<Answer> {
  const begun = await begin(app, call, transcribed);
  const task = await finalTask(app, call, begun);
  const form = formOf(begun.response_format);
  const { text, content_type } = await textOf(app, task);
  const words = form === 'json' || form === 'text' ? wordsOf(text, content_type) : text;
  const headers = { ...begun.headers, ...costHeaders(task) };
  if (form === 'json') return { status: 200, body: { text: words, ...usageOf(task) }, headers };
  const type = form === 'text' ? 'text/plain; charset=utf-8' : content_type;
  return { status: 200, body: words, headers: { ...headers, 'content-type': type } };
}

/** Returns the recording's length if it is the unit of the price. */
function usageOf({ pricing }: Task): object {
  const { second } = pricing.input_units ?? {};
  return second === undefined ? {} : { usage: { type: 'duration', seconds: Math.ceil(Number(second)) } };
}

const forms = ['json', 'text', 'srt', 'verbose_json', 'vtt'] as const;

function formOf(response_format: unknown): (typeof forms)[number] {
  const form = forms.find((each) => each === (response_format ?? 'json'));
  if (form !== undefined) return form;
  const message = `response_format must be ${forms.join(', ')}.`;
  throw new ApiError('invalid_request', message, { param: 'response_format' });
}

async function textOf({ storage }: { storage: Storage }, task: Task): Promise<{ text: string; content_type: string }> {
  const [file] = task.files;
  if (file?.item.text !== undefined) return { text: file.item.text, content_type: file.item.content_type };
  const opened = file && !task.files_removed_at ? await storage.open(file.key) : undefined;
  if (!file || !opened) throw filesGone(task);
  const bytes = await readBytes(opened.stream, text_bytes_max);
  return { text: bytes.toString('utf8'), content_type: file.item.content_type };
}

/** The words of a transcript, also of one that says more than them. */
function wordsOf(text: string, content_type: string): string {
  if (!content_type.startsWith('application/json')) return text;
  const words = own(JSON.parse(text), 'text');
  return typeof words === 'string' ? words : text;
}
