import type { ChatStyle } from '../../../../src/dashboard/views/playground.ts';
import { below } from '../../below.ts';
import { Failure, isRecord } from '../../api.ts';
import type { Heard } from './styles/style.ts';
import { styles } from './styles/styles.ts';

/** One call of a chat model by the relay of the dashboard, read while it is being answered. */

type StreamRequest = {
  path: string;
  style: ChatStyle;
  body: object;
  signal: AbortSignal;
  onBegin: (request_id: string | undefined) => void;
  /** An event as it came, and what it says. */
  onEvent: (raw: string, heard: Heard) => void;
};

/** Throws Failure for what the service or the model's provider tells, and what `signal` aborts with. */
export async function streamChat({ path, style, body, signal, onBegin, onEvent }: StreamRequest): Promise<void> {
  const { streamed, hear } = styles[style];
  const response = await fetch(below(path), {
    method: 'POST',
    credentials: 'same-origin',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, ...streamed }),
    signal,
  });
  const request_id = response.headers.get('x-request-id') ?? undefined;
  if (!response.ok || !response.body) throw failureOf(response.status, parsed(await response.text()), request_id);
  onBegin(request_id);
  for await (const { raw, event } of eventsOf(response.body)) {
    const heard = isRecord(event) ? hear(event) : {};
    onEvent(raw, heard);
    if (heard.error !== undefined) {
      throw new Failure(502, { message: heard.error, ...(request_id !== undefined && { request_id }) });
    }
  }
}

function failureOf(status: number, error_message: unknown, request_id: string | undefined): Failure {
  const error = isRecord(error_message) && isRecord(error_message['error']) ? error_message['error'] : {};
  const message = typeof error['message'] === 'string' ? error['message'] : `The service answered ${status}.`;
  return new Failure(status, { message, ...(request_id !== undefined && { request_id }) });
}

type StreamEvent = { raw: string; event: unknown };

/** Server-sent events, which an empty line ends, with the JSON of their data. */
async function* eventsOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  const reader = stream.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    const blocks = (rest + (value ?? '')).split(/\r?\n\r?\n/);
    rest = done ? '' : (blocks.pop() ?? '');
    for (const raw of blocks) if (raw.trim() !== '') yield { raw, event: parsed(dataOf(raw)) };
    if (done) return;
  }
}

function dataOf(raw: string): string {
  const lines = raw.split(/\r?\n/).filter((line) => line.startsWith('data:'));
  return lines.map((line) => line.slice('data:'.length).trimStart()).join('\n');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
