import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Reads what it is sent to its end, and answers in the ways in which an upstream can be hard to read. */
export type HostileUpstream = { url: string; stop(): Promise<void> };

/** Manners of the upstream, each the name of an upstream model; each of them in all styles. */
export const upstream_manners = [
  'calm',
  'tiny_frames',
  'giant_frame',
  'endless_line',
  'empty_lines',
  'comments',
  'many_data_lines',
  'many_calls',
  'argument_pieces',
  'deep',
  'wide',
  'long_numbers',
  'escapes',
  'giant_whole',
  'byte_by_byte',
] as const;

export async function startHostileUpstream(): Promise<HostileUpstream> {
  const server = createServer((request, response) => {
    response.on('error', () => {});
    answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${portOf(address)}`,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function portOf(address: AddressInfo | string | null): number {
  if (typeof address === 'object' && address) return address.port;
  throw new Error('the upstream has no port');
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const manner = upstream_manners.find((name) => body.includes(`"${name}"`)) ?? 'calm';
  if (request.url?.includes('/checkout/')) return answerWhole(response, payment_page);
  const { style, streams } = styleOf(request.url ?? '');
  if (!streams && !body.includes('"stream":true')) return answerWhole(response, style.whole(wholes[manner] ?? 'Hello'));
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const gone = new Promise((resolve) => response.once('close', resolve));
  for (const piece of style.stream(manner)) {
    if (response.destroyed) return;
    if (!response.write(piece)) await Promise.race([new Promise((resolve) => response.once('drain', resolve)), gone]);
  }
  response.end();
}

/** As Stripe describes one. */
const payment_page = '{"id":"cs_1","object":"checkout.session","url":"https://checkout.example/cs_1"}';

function styleOf(path: string): { style: Style; streams: boolean } {
  if (path.includes(':')) return { style: contents, streams: path.includes(':stream') };
  if (path.includes('/messages')) return { style: messages, streams: false };
  return { style: path.includes('/responses') ? responses : completions, streams: false };
}

function answerWhole(response: ServerResponse, text: string): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(text);
}

/** As they stand in a JSON string. */
const wholes: Partial<Record<string, string>> = {
  giant_whole: 'a'.repeat(8_000_000),
  escapes: '\\u0000\\"'.repeat(200_000),
  deep: '[{'.repeat(100_000),
  long_numbers: '9'.repeat(500_000),
};

type Style = { whole(text: string): string; stream(manner: string): Iterable<string> };

/** The way in which a style writes the pieces of a stream. */
type Pieces = {
  begin: string;
  text(text: string): string;
  /** Opens call number `index` of a tool, then its arguments, each as it stands in a JSON string. */
  call(index: number): string;
  args(index: number, text: string): string;
  end: string;
};

function* streamOf({ begin, text, call, args, end }: Pieces, manner: string): Iterable<string> {
  yield begin;
  switch (manner) {
    case 'tiny_frames':
      for (let i = 0; i < 300; i++) yield text('a').repeat(100);
      break;
    case 'byte_by_byte':
      yield* text('slowly '.repeat(200));
      break;
    case 'giant_frame':
      yield text('a'.repeat(6_000_000));
      break;
    case 'endless_line':
      yield 'data: ';
      for (let i = 0; i < 64; i++) yield 'a'.repeat(1_000_000);
      break;
    case 'empty_lines':
      for (let i = 0; i < 16; i++) yield '\n'.repeat(1_000_000);
      break;
    case 'comments':
      for (let i = 0; i < 16; i++) yield ': c\n\n'.repeat(100_000);
      break;
    case 'many_data_lines':
      yield `${'data:\n'.repeat(200_000)}\n`;
      break;
    case 'many_calls':
      for (let i = 0; i < 3_000; i++) yield call(i) + args(i, '{}');
      break;
    case 'argument_pieces':
      yield call(0) + args(0, '{\\"a\\":\\"');
      for (let i = 0; i < 200; i++) yield args(0, 'b').repeat(100);
      yield args(0, '\\"}');
      break;
    case 'deep':
      yield `data: ${'[{"a":'.repeat(300_000)}\n\n`;
      break;
    case 'wide':
      yield `data: {${Array.from({ length: 200_000 }, (_, index) => `"k${index}":0`).join(',')}}\n\n`;
      break;
    case 'long_numbers':
      yield `data: {"choices":[{"index":0,"delta":{"content":"a"}}],"n":[${'12345678901234567890,'.repeat(100_000)}0]}\n\n`;
      break;
    case 'escapes':
      yield text('\\u0000\\"\\\\'.repeat(100_000));
      break;
    default:
      yield text('Hello');
  }
  yield end;
}

const usage = { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 };

const chunk = (delta: string, more = '') =>
  `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{${delta}}${more}}]}\n\n`;

const completions: Style = {
  whole: (text) =>
    `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"${text}"},"finish_reason":"stop"}],"usage":${JSON.stringify(usage)}}`,
  stream: (manner) =>
    streamOf(
      {
        begin: chunk('"role":"assistant","content":""'),
        text: (text) => chunk(`"content":"${text}"`),
        call: (index) =>
          chunk(
            `"tool_calls":[{"index":${index},"id":"c${index}","type":"function","function":{"name":"f","arguments":""}}]`,
          ),
        args: (index, text) => chunk(`"tool_calls":[{"index":${index},"function":{"arguments":"${text}"}}]`),
        end: `${chunk('', ',"finish_reason":"stop"')}data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":${JSON.stringify(usage)}}\n\ndata: [DONE]\n\n`,
      },
      manner,
    ),
};

const event = (name: string, members: string) => `event: ${name}\ndata: {"type":"${name}",${members}}\n\n`;

const message = (content: string) =>
  `{"id":"m","type":"message","role":"assistant","model":"m","content":${content},"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":5}}`;

const messages: Style = {
  whole: (text) => message(`[{"type":"text","text":"${text}"}]`),
  stream: (manner) =>
    streamOf(
      {
        begin:
          event('message_start', `"message":${message('[]')}`) +
          event('content_block_start', '"index":0,"content_block":{"type":"text","text":""}'),
        text: (text) => event('content_block_delta', `"index":0,"delta":{"type":"text_delta","text":"${text}"}`),
        call: (index) =>
          (index === 0 ? event('content_block_stop', '"index":0') : event('content_block_stop', `"index":${index}`)) +
          event(
            'content_block_start',
            `"index":${index + 1},"content_block":{"type":"tool_use","id":"t${index}","name":"f","input":{}}`,
          ),
        args: (index, text) =>
          event(
            'content_block_delta',
            `"index":${index + 1},"delta":{"type":"input_json_delta","partial_json":"${text}"}`,
          ),
        end:
          event(
            'message_delta',
            '"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}',
          ) + 'event: message_stop\ndata: {"type":"message_stop"}\n\n',
      },
      manner,
    ),
};

const response = (status: string, output: string) =>
  `{"id":"r","object":"response","created_at":1,"status":"${status}","model":"m","output":${output},"usage":{"input_tokens":5,"output_tokens":5,"total_tokens":10}}`;

const responses: Style = {
  whole: (text) =>
    response(
      'completed',
      `[{"type":"message","id":"i","role":"assistant","status":"completed","content":[{"type":"output_text","text":"${text}","annotations":[]}]}]`,
    ),
  stream: (manner) =>
    streamOf(
      {
        begin:
          event('response.created', `"response":${response('in_progress', '[]')}`) +
          event(
            'response.output_item.added',
            '"output_index":0,"item":{"type":"message","id":"i","role":"assistant","status":"in_progress","content":[]}',
          ) +
          event(
            'response.content_part.added',
            '"item_id":"i","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}',
          ),
        text: (text) =>
          event('response.output_text.delta', `"item_id":"i","output_index":0,"content_index":0,"delta":"${text}"`),
        call: (index) =>
          event(
            'response.output_item.added',
            `"output_index":${index + 1},"item":{"type":"function_call","id":"f${index}","call_id":"c${index}","name":"f","arguments":""}`,
          ),
        args: (index, text) =>
          event(
            'response.function_call_arguments.delta',
            `"item_id":"f${index}","output_index":${index + 1},"delta":"${text}"`,
          ),
        end: event('response.completed', `"response":${response('completed', '[]')}`),
      },
      manner,
    ),
};

const candidate = (parts: string) =>
  `{"candidates":[{"index":0,"content":{"role":"model","parts":[${parts}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":5,"totalTokenCount":10}}`;

const contents: Style = {
  whole: (text) => candidate(`{"text":"${text}"}`),
  stream: (manner) =>
    streamOf(
      {
        begin: '',
        text: (text) => `data: ${candidate(`{"text":"${text}"}`)}\n\n`,
        call: (index) => `data: ${candidate(`{"functionCall":{"name":"f${index}","args":{}}}`)}\n\n`,
        args: () => '',
        end: `data: ${candidate('')}\n\n`,
      },
      manner,
    ),
};
