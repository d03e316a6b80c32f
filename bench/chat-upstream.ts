/**
 * An upstream that costs nearly nothing, in a process of its own: answers at once in both chat styles, whole
 * or as a stream whose length and pace stand in the model's name (`frames-100-50`: 100 frames at 50/s).
 * Bytes on sockets and no HTTP server: what is measured is whoever stands before it.
 */
import { createServer, type AddressInfo, type Socket } from 'node:net';

/** The text of every first frame, by which its arrival is recognised. */
export const first_words = 'Once upon';

const sentence = 'The quick brown fox jumps over the lazy dog while nine thoughtful engineers look at the clock. ';
const usage = { prompt_tokens: 120, completion_tokens: 60, total_tokens: 180 };
const tick_ms = 2;

type Style = 'completions' | 'messages';
type Stream = { socket: Socket; style: Style; left: number; pause_ms: number; due_ms: number };

const streams = new Set<Stream>();

function main(): void {
  const server = createServer({ noDelay: true }, answerAll);
  server.listen(0, '127.0.0.1', 4_096, () => process.send?.({ port: (server.address() as AddressInfo).port }));
  setInterval(sendDue, tick_ms);
  process.on('disconnect', () => process.exit());
}

/** Requests on one connection, one after the other. */
function answerAll(socket: Socket): void {
  let received: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    if (typeof chunk === 'string') return;
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    const head_end = received.indexOf('\r\n\r\n');
    if (head_end === -1) return;
    const head = received.toString('latin1', 0, head_end);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    const is_whole =
      length === undefined
        ? received.subarray(-5).equals(chunks_end)
        : received.length >= head_end + 4 + Number(length);
    if (!is_whole) return;
    const body = received.toString('latin1', head_end + 4);
    received = Buffer.alloc(0);
    answer(socket, head.includes('/messages HTTP') ? 'messages' : 'completions', body);
  });
  socket.on('error', () => socket.destroy());
  socket.on('close', () => {
    for (const stream of streams) if (stream.socket === socket) streams.delete(stream);
  });
}

const chunks_end = Buffer.from('0\r\n\r\n');

function answer(socket: Socket, style: Style, body: string): void {
  if (!/"stream": ?true/.test(body)) return void socket.write(whole[style]);
  const [, frames = '10', per_s = '50'] = /"model": ?"frames-(\d+)-(\d+)"/.exec(body) ?? [];
  const pause_ms = 1000 / Number(per_s);
  socket.write(opening[style]);
  streams.add({ socket, style, left: Number(frames) - 1, pause_ms, due_ms: performance.now() + pause_ms });
}

function sendDue(): void {
  const now_ms = performance.now();
  for (const stream of streams) {
    if (stream.due_ms > now_ms) continue;
    stream.due_ms += stream.pause_ms;
    stream.left -= 1;
    if (stream.left >= 0) stream.socket.write(frame[stream.style]);
    if (stream.left > 0) continue;
    stream.socket.write(closing[stream.style]);
    streams.delete(stream);
  }
}

const completions_whole = {
  id: 'chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT',
  object: 'chat.completion',
  created: 1_760_000_000,
  model: 'gpt-upstream-2026-01-01',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: sentence.repeat(4), refusal: null, annotations: [] },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { ...usage, prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 } },
  service_tier: 'default',
  system_fingerprint: 'fp_44709d6fcb',
};

const messages_usage = {
  input_tokens: 120,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 60,
};

const messages_whole = {
  id: 'msg_01XFDUDYJgAACzvnptvVoYEL',
  type: 'message',
  role: 'assistant',
  model: 'claude-upstream-1',
  content: [{ type: 'text', text: sentence.repeat(4) }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: messages_usage,
};

const whole = { completions: wholeAnswer(completions_whole), messages: wholeAnswer(messages_whole) };

function wholeAnswer(body: object): Buffer {
  const text = JSON.stringify(body);
  return Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
  );
}

const stream_head =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n';

const opening = {
  completions: Buffer.from(stream_head + inChunk(completionsFrame({ role: 'assistant', content: first_words }))),
  messages: Buffer.from(
    stream_head +
      inChunk(
        messagesFrame('message_start', { message: { ...messages_whole, content: [], stop_reason: null } }) +
          messagesFrame('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }) +
          messagesDelta(first_words),
      ),
  ),
};

const frame = {
  completions: Buffer.from(inChunk(completionsFrame({ content: ' a time' }))),
  messages: Buffer.from(inChunk(messagesDelta(' a time'))),
};

const closing = {
  completions: Buffer.from(
    `${inChunk(completionsFrame({}, 'stop') + completionsEnd())}${inChunk('data: [DONE]\n\n')}0\r\n\r\n`,
  ),
  messages: Buffer.from(
    `${inChunk(
      messagesFrame('content_block_stop', { index: 0 }) +
        messagesFrame('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 60 } }) +
        messagesFrame('message_stop', {}),
    )}0\r\n\r\n`,
  ),
};

function completionsFrame(delta: object, finish_reason: string | null = null): string {
  const { id, created, model, service_tier, system_fingerprint } = completions_whole;
  const choices = [{ index: 0, delta, logprobs: null, finish_reason }];
  const chunk = { id, object: 'chat.completion.chunk', created, model, service_tier, system_fingerprint, choices };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

function completionsEnd(): string {
  const { id, created, model } = completions_whole;
  return `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created, model, choices: [], usage })}\n\n`;
}

function messagesDelta(text: string): string {
  return messagesFrame('content_block_delta', { index: 0, delta: { type: 'text_delta', text } });
}

function messagesFrame(type: string, rest: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
}

function inChunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

if (process.argv.includes('--upstream')) main();
