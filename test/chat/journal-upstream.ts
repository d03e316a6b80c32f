import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { generated } from './setup.ts';
import { response, messageItem } from './responses-streams.ts';
import { chunk, done, event, messageStart } from './streams.ts';

/**
 * An upstream of four styles that keeps a journal of what it bills. It bills the input of each request that it takes,
 * and each token of output that it has generated when it is done, or notices that its client is gone. A word is a
 * token. Its thoughts are tokens too: it has them before the first word, and shows nothing of them but their number.
 */

/** Points that an answer has reached. */
export const points = ['nothing', 'ping', 'first word', 'last word', 'finish reason', 'usage'] as const;
export type Point = (typeof points)[number];

export type Bill = { input: number; output: number; ended: 'done' | 'aborted' };

/** The plan that the upstream gets beforehand, and what a test learns of it. */
export type Plan = {
  input_tokens: number;
  /** Of the input, in messages style: what is written to the cache for an hour. */
  written_for_an_hour?: number;
  thoughts: number;
  words: readonly string[];
  /** The point at which it waits for `goOn`. */
  pause_at: Point;
  /** Behind the pause it writes one piece more and waits until its client is gone. */
  waits_for_abort: boolean;
};

export class Journal {
  readonly reached = Promise.withResolvers<void>();
  readonly goOn = Promise.withResolvers<void>();
  readonly billed = Promise.withResolvers<Bill>();
  readonly plan: Plan;

  constructor(plan: Plan) {
    this.plan = plan;
  }
}

export type JournalUpstream = { url: string; expect(model: string, plan: Plan): Journal; stop(): Promise<void> };

type Step = { point: Point; text: string; output: number };

export async function startJournalUpstream(): Promise<JournalUpstream> {
  const journals = new Map<string, Journal>();
  const server = createServer((request, answer) => void serve(journals, request, answer));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    expect: (model, plan) => {
      const journal = new Journal(plan);
      journals.set(model, journal);
      return journal;
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function serve(journals: Map<string, Journal>, request: IncomingMessage, answer: ServerResponse): Promise<void> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const path = request.url ?? '';
  const body = JSON.parse(Buffer.concat(pieces).toString()) as { model?: string; stream?: boolean };
  const model = body.model ?? /\/models\/([^/:]+):/.exec(path)?.[1] ?? '';
  const is_stream = body.stream ?? path.includes('streamGenerateContent');
  const journal = journals.get(model);
  if (!journal) return void answer.writeHead(404).end('{}');
  const { plan } = journal;
  const gone = new Promise<'gone'>((resolve) => answer.once('close', () => resolve('gone')));
  const steps = is_stream ? streamOf(styleOf(path), plan) : wholeOf(styleOf(path), plan);
  const bill: Bill = { input: plan.input_tokens, output: plan.thoughts, ended: 'aborted' };
  answer.writeHead(200, { 'content-type': is_stream ? 'text/event-stream' : 'application/json' });
  let is_behind_pause = false;
  for (const { point, text, output } of steps) {
    if (text !== '') await new Promise<unknown>((resolve) => answer.write(text, resolve));
    bill.output = Math.max(bill.output, output);
    if (is_behind_pause && plan.waits_for_abort && output > 0) {
      await gone;
      return journal.billed.resolve(bill);
    }
    if (point !== plan.pause_at || is_behind_pause) continue;
    is_behind_pause = true;
    journal.reached.resolve();
    const is_gone = await Promise.race([gone, plan.waits_for_abort && output > 0 ? gone : journal.goOn.promise]);
    if (is_gone === 'gone') return journal.billed.resolve(bill);
  }
  answer.end();
  journal.billed.resolve({ ...bill, ended: 'done' });
}

type Style = 'completions' | 'messages' | 'responses' | 'gemini';

function styleOf(path: string): Style {
  if (path.endsWith('/chat/completions')) return 'completions';
  if (path.endsWith('/responses')) return 'responses';
  return path.endsWith('/messages') ? 'messages' : 'gemini';
}

/** The frames of a stream, each with the output that was generated for it. */
function streamOf(style: Style, plan: Plan): Step[] {
  const { words, thoughts } = plan;
  const { ping, start, word, finish, usage, end } = frames[style](plan);
  const spoken = words.map((text, index): Step => {
    const point = index === 0 ? 'first word' : index === words.length - 1 ? 'last word' : 'ping';
    return { point, text: (index === 0 ? start : '') + word(text), output: thoughts + index + 1 };
  });
  const all = thoughts + words.length;
  return [
    { point: 'nothing', text: '', output: 0 },
    { point: 'ping', text: ping, output: 0 },
    ...spoken.map((step, index) =>
      index > 0 && index < words.length - 1 ? { ...step, point: 'nothing' as const } : step,
    ),
    { point: 'finish reason', text: finish, output: all },
    { point: 'usage', text: usage, output: all },
    { point: 'nothing', text: end, output: all },
  ];
}

/** The pieces of a whole answer, which is generated before its first byte. */
function wholeOf(style: Style, plan: Plan): Step[] {
  const text = JSON.stringify(wholes[style](plan));
  const all = plan.thoughts + plan.words.length;
  const [half, late] = [Math.floor(text.length / 2), text.length - 5];
  return [
    { point: 'nothing', text: '', output: 0 },
    { point: 'ping', text: ' ', output: 0 },
    { point: 'first word', text: text.slice(0, half), output: all },
    { point: 'last word', text: text.slice(half, late), output: all },
    { point: 'finish reason', text: text.slice(late, -1), output: all },
    { point: 'usage', text: text.slice(-1), output: all },
  ];
}

type Frames = {
  ping: string;
  start: string;
  word(text: string): string;
  finish: string;
  usage: string;
  end: string;
};

function completionsUsage({ input_tokens, thoughts, words }: Plan) {
  const completion_tokens = thoughts + words.length;
  return {
    prompt_tokens: input_tokens,
    completion_tokens,
    total_tokens: input_tokens + completion_tokens,
    completion_tokens_details: { reasoning_tokens: thoughts },
  };
}

function responsesUsage({ input_tokens, thoughts, words }: Plan) {
  const output_tokens = thoughts + words.length;
  return {
    input_tokens,
    output_tokens,
    output_tokens_details: { reasoning_tokens: thoughts },
    total_tokens: input_tokens + output_tokens,
  };
}

function messagesInput({ input_tokens, written_for_an_hour: written = 0 }: Omit<Plan, 'thoughts' | 'words'>) {
  const cache_creation = { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: written };
  const caching = { cache_creation_input_tokens: written, cache_creation };
  return { input_tokens: input_tokens - written, ...(written > 0 && caching) };
}

function geminiUsage({ input_tokens, thoughts, words }: Plan) {
  return {
    promptTokenCount: input_tokens,
    candidatesTokenCount: words.length,
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    totalTokenCount: input_tokens + thoughts + words.length,
  };
}

const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
const place = { item_id: 'msg_1', output_index: 0, content_index: 0 };

const frames: { readonly [style in Style]: (plan: Plan) => Frames } = {
  completions: (plan) => ({
    ping: ': processing\n\n',
    start: chunk({ role: 'assistant', content: '' }),
    word: (content) => chunk({ content }),
    finish: chunk({}, {}, 'stop'),
    usage: data({
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      model: 'x',
      choices: [],
      usage: completionsUsage(plan),
    }),
    end: done,
  }),
  messages: ({ thoughts, words, ...plan }) => ({
    ping: event({ type: 'ping' }),
    start:
      messageStart({ ...messagesInput(plan), output_tokens: 1 }) +
      event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    word: (text) => event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
    finish:
      event({ type: 'content_block_stop', index: 0 }) +
      event({ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null } }),
    usage: event({ type: 'message_delta', delta: {}, usage: { output_tokens: thoughts + words.length } }),
    end: event({ type: 'message_stop' }),
  }),
  // Its last event tells of its end and its usage at once.
  responses: (plan) => ({
    ping: ': processing\n\n',
    start: event({ type: 'response.created', response: response([], { status: 'in_progress', usage: null }) }),
    word: (delta) => event({ type: 'response.output_text.delta', ...place, delta }),
    finish: event({
      type: 'response.completed',
      response: response([messageItem(plan.words.join(''))], { usage: responsesUsage(plan) }),
    }),
    usage: '',
    end: '',
  }),
  gemini: (plan) => ({
    ping: ': processing\n\n',
    start: '',
    word: (text) => data({ candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0 }] }),
    finish: data({ candidates: [{ content: { role: 'model', parts: [] }, index: 0, finishReason: 'STOP' }] }),
    usage: data({ usageMetadata: geminiUsage(plan) }),
    end: '',
  }),
};

const wholes: { readonly [style in Style]: (plan: Plan) => object } = {
  completions: (plan) => ({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'x',
    choices: [{ index: 0, message: { role: 'assistant', content: plan.words.join('') }, finish_reason: 'stop' }],
    usage: completionsUsage(plan),
  }),
  messages: ({ thoughts, words, ...plan }) => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'x',
    content: [{ type: 'text', text: words.join('') }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { ...messagesInput(plan), output_tokens: thoughts + words.length },
  }),
  responses: (plan) => response([messageItem(plan.words.join(''))], { usage: responsesUsage(plan) }),
  gemini: (plan) => generated([{ text: plan.words.join('') }], geminiUsage(plan)),
};
