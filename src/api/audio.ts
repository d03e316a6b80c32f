import type { Storage } from '../storage/storage.ts';
import { own } from '../catalog/input-schema.ts';
import type { JsonObject } from '../catalog/model.ts';
import { ApiError } from '../errors.ts';
import { readBytes } from '../lib/read-bytes.ts';
import {
  speech_parameters,
  transcription_parameters,
  translation_parameters,
} from '../styles/media-parameters/parameters.ts';
import type { Task } from '../tasks/task.ts';
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
import { speech_body, transcription, transcription_form, translation_form } from './media-schemas.ts';
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

/** In English, whatever the language of the recording. */
const translated: MediaCall = { ...transcribed, parameters: translation_parameters, fixed: { translate: true } };

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

/** Hours of speech; base64 of it is in memory. */
const speech_bytes_max = 50_000_000;

async function answerAudio(app: MediaCallParts, call: Call): Promise<Answer> {
  const begun = await begin(app, call, spoken);
  const task = await finalTask(app, call, begun);
  const [file] = task.files;
  const opened = file && !task.files_removed_at ? await app.storage.open(file.key) : undefined;
  if (!file || !opened) throw filesGone(task);
  const headers = { ...begun.headers, ...costHeaders(task) };
  if (begun.stream) {
    const audio = (await readBytes(opened.stream, speech_bytes_max)).toString('base64');
    const usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
    const answer = eventsAnswer([
      { type: 'speech.audio.delta', audio },
      { type: 'speech.audio.done', usage },
    ]);
    return { status: 200, body: answer.body, headers: { ...headers, ...answer.headers } };
  }
  return {
    status: 200,
    body: opened.stream,
    headers: {
      ...headers,
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
    description:
      'Uploads a recording, runs a task with it, waits for it, and answers the text in the format of the OpenAI SDKs.',
    query: wait_query,
    headers: idempotency_header,
    body: {
      content_type: 'multipart/form-data',
      schema: transcription_form,
      examples: { recording: { model: 'sandbox/transcript', file: 'morning.wav' } },
    },
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
  handle: (app, call) => answerText(app, call, transcribed),
};

export const translate: Endpoint<MediaCallParts> = {
  ...transcribe,
  path: '/v1/audio/translations',
  docs: {
    ...transcribe.docs,
    summary: 'Transcribe a recording in English',
    description: 'For models with a field that says to translate: `translate`, `task` or `target_language`.',
    body: {
      content_type: 'multipart/form-data',
      schema: translation_form,
      examples: { recording: { model: 'sandbox/transcript', file: 'morning.wav' } },
    },
    responses: {
      ...transcribe.docs.responses,
      200: { description: 'The text, as `response_format` says.', headers: response_headers },
    },
  },
  handle: (app, call) => answerText(app, call, translated),
};

const text_bytes_max = 20_000_000;

async function answerText(app: MediaCallParts, call: Call, media_call: MediaCall): Promise<Answer> {
  const begun = await begin(app, call, media_call);
  const task = await finalTask(app, call, begun);
  const form = formOf(begun.response_format);
  const { text, content_type } = await textOf(app, task);
  const words = form === 'json' || form === 'text' ? wordsOf(text, content_type) : text;
  const headers = { ...begun.headers, ...costHeaders(task) };
  if (begun.stream) return streamedText(words, headers);
  if (form === 'json') return { status: 200, body: { text: words, ...usageOf(task) }, headers };
  const type = form === 'text' ? 'text/plain; charset=utf-8' : content_type;
  return { status: 200, body: words, headers: { ...headers, 'content-type': type } };
}

/** The whole text as the first piece, and again at the end. */
function streamedText(text: string, headers: Record<string, string>): Answer {
  const answer = eventsAnswer([
    { type: 'transcript.text.delta', delta: text },
    { type: 'transcript.text.done', text }, // `usage` would be tokens there
  ]);
  return { status: 200, body: answer.body, headers: { ...headers, ...answer.headers } };
}

/** Returns the recording's length if it is the unit of the price. */
function usageOf({ pricing }: Task): JsonObject {
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
