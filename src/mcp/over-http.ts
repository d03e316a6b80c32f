import { isRecord } from '../lib/is-record.ts';
import { readBytes } from '../lib/read-bytes.ts';
import type { Api, ApiFile, ApiReply } from './api.ts';

/** A service and a key of it. `url` is its address, without a slash at its end. */
export type Service = { readonly url: string; readonly api_key: string };

/** Longer than the service takes for anything but a wait, which is added to it. */
const answer_ms_max = 330_000;
const answer_bytes_max = 67_108_864;

/** Returns the API of a service over HTTP. What cannot be reached is a reply with status 0, which says so. */
export function apiOverHttp(service: Service): Api {
  const get = (path: string, query: Record<string, string> = {}) =>
    ask(service, 'GET', Object.keys(query).length === 0 ? path : `${path}?${new URLSearchParams(query)}`);
  const post = (path: string, body?: object, signal?: AbortSignal) => ask(service, 'POST', path, body, signal);
  return {
    models: (query) => get('/v1/models', query),
    model: (id) => get(`/v1/models/${encodeURIComponent(id)}`),
    estimate: (body) => post('/v1/estimate', body),
    generate: (body, wait_s, signal) => post(`/v1/generate?wait=${wait_s}`, body, signal),
    task: (id) => get(`/v1/tasks/${encodeURIComponent(id)}`),
    tasks: (query) => get('/v1/tasks', query),
    cancel: (id) => post(`/v1/tasks/${encodeURIComponent(id)}/cancel`),
    balance: () => get('/v1/balance'),
    chat: (body, signal) => post('/v1/chat/completions', body, signal),
    files: fetchFiles,
  };
}

async function ask(
  { url, api_key }: Service,
  method: string,
  path: string,
  body?: object,
  signal?: AbortSignal,
): Promise<ApiReply> {
  const limit = AbortSignal.timeout(answer_ms_max);
  try {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${api_key}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
      redirect: 'error', // the key would go along
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    });
    const json: unknown = await response.json();
    return { status: response.status, json: isRecord(json) ? json : {} };
  } catch (error) {
    const message = `${url} gave no answer (${reasonOf(error)}). Is it the address of a Medley that runs?`;
    return { status: 599, json: { error: { type: 'unreachable', message } } };
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

async function fetchFiles(task: Record<string, unknown>, bytes_max: number): Promise<ApiFile[]> {
  const outputs: unknown = task['output'];
  const small = (Array.isArray(outputs) ? outputs.filter(isRecord) : []).filter(
    ({ size_bytes }) => typeof size_bytes === 'number' && size_bytes <= bytes_max,
  );
  const files = small.map(async ({ url, content_type }): Promise<ApiFile[]> => {
    const response = await fetch(String(url), { signal: AbortSignal.timeout(answer_ms_max) }).catch(() => undefined);
    if (!response?.ok || !response.body) return []; // the link is in the answer
    return [
      {
        bytes: await readBytes(chunksOf(response.body), Math.min(bytes_max, answer_bytes_max)),
        content_type: String(content_type),
      },
    ];
  });
  return (await Promise.all(files)).flat();
}

async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncIterable<Buffer> {
  for await (const chunk of body) yield Buffer.from(chunk);
}
