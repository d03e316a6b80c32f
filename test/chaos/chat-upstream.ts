import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { chunk, done, event, messageStart, usageChunk } from '../chat/streams.ts';
import type { BillNote, ChatOrder, Journal } from './place.ts';

/**
 * The chat of a paid upstream, in two styles. It bills the input of each request that it takes, and each token of
 * output that it has generated when it is done, or notices that its client is gone. Four bytes are a token of its
 * answers. Models whose name begins with `think` have thoughts before their first word, and show their number only.
 */
export async function answerChat(
  path: string,
  text: string,
  answer: ServerResponse,
  journal: Journal<BillNote>,
): Promise<void> {
  const body = JSON.parse(text) as Body;
  const style = path.endsWith('/messages') ? 'messages' : 'completions';
  const texts = [...textsIn(body)];
  const order = JSON.parse(texts.find((each) => each.startsWith('{"call"'))?.split('\n')[0] ?? '{}') as ChatOrder;
  const bytes = texts.reduce((sum, each) => sum + Buffer.byteLength(each), 0);
  const input_tokens = order.is_dense ? bytes : Math.ceil(bytes / 4);
  const bound = Number(body.max_tokens ?? body.max_completion_tokens);
  if (!(bound > 0)) throw new Error('an upstream is sent a bound');
  const bill: BillNote = {
    at_ms: Date.now(),
    event: 'asked',
    call: order.call,
    route: body.model,
    number: `${process.pid}.${requests++}`,
    way: order.way,
    input_tokens,
    output_tokens: 0,
    ended: 'under way',
  };
  journal.add(bill);
  const ended = await play(style, body.stream === true, order, bound, bill, answer).catch(() => 'left' as const);
  journal.add({ ...bill, at_ms: Date.now(), event: 'billed', ended });
}

let requests = 0;

type Body = { model: string; stream?: boolean; max_tokens?: number; max_completion_tokens?: number };

/** Every text that a model reads. */
function* textsIn(value: unknown, is_text = false): Generator<string> {
  if (typeof value === 'string' && is_text) yield value;
  if (Array.isArray(value)) for (const each of value) yield* textsIn(each, is_text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
  for (const [key, each] of Object.entries(value)) {
    yield* textsIn(each, key === 'text' || key === 'content' || key === 'system');
  }
}

type Style = 'completions' | 'messages';
type Step = { text: string; output_tokens: number; pause_ms: number };

/** Longer than the first_byte of the routes. */
const silence_ms = 8_000;

/** A caller who leaves at a point has this time to do so. */
export const leaving_ms = 400;

const pieces_count = 8;

async function play(
  style: Style,
  is_stream: boolean,
  order: ChatOrder,
  bound: number,
  bill: BillNote,
  answer: ServerResponse,
): Promise<BillNote['ended']> {
  const { way } = order;
  if (way === 'refuse all' || (way === 'refuse' && bill.route.endsWith('a'))) {
    bill.input_tokens = 0;
    answer
      .writeHead(500, { 'content-type': 'application/json' })
      .end('{"error":{"message":"no","type":"server_error"}}');
    return 'refused';
  }
  const gone = new Promise<'left'>((resolve) => answer.once('close', () => resolve('left')));
  if (way === 'silent') return Promise.race([gone, sleep(silence_ms).then(() => (answer.destroy(), 'cut' as const))]);
  if (way === 'break') return (void answer.destroy(), 'cut');
  const output_tokens = Math.min(order.output_tokens, bound);
  if (order.leaves_at === 'before the first byte') await Promise.race([gone, sleep(leaving_ms)]);
  // What is not streamed is generated before its first byte, whether or not its client waits for it.
  if (!is_stream) bill.output_tokens = output_tokens;
  answer.writeHead(200, { 'content-type': is_stream ? 'text/event-stream' : 'application/json' });
  const steps = is_stream ? streamOf(style, order, bill, output_tokens) : wholeOf(style, order, bill, output_tokens);
  for (const [i, step] of steps.entries()) {
    if (answer.destroyed) return 'left';
    bill.output_tokens = Math.max(bill.output_tokens, step.output_tokens);
    await new Promise<unknown>((resolve) => answer.write(step.text, resolve));
    if (way === 'cut' && i === Math.floor(steps.length / 2)) {
      await sleep(30); // what was written has to arrive
      return (void answer.destroy(), 'cut');
    }
    if ((await Promise.race([gone, sleep(step.pause_ms)])) === 'left') return 'left';
  }
  answer.end();
  return 'done';
}

/** Its first word is `wor `, its last one `end `. */
function streamOf(style: Style, order: ChatOrder, bill: BillNote, output_tokens: number): Step[] {
  const thoughts = thoughtsOf(bill, output_tokens);
  const visible = output_tokens - thoughts;
  const { pause_ms, leaves_at, way } = order;
  const pauseAt = (point: ChatOrder['leaves_at']) => pause_ms + (leaves_at === point ? leaving_ms : 0);
  const frames = framesOf(style, bill, order, output_tokens, thoughts);
  const size = Math.max(1, Math.ceil(visible / pieces_count));
  const words: Step[] = [];
  for (let at = 0; at < visible; at += size) {
    const count = Math.min(size, visible - at);
    const [is_first, is_last] = [at === 0, at + count >= visible];
    const text = 'wor '.repeat(count - (is_last ? 1 : 0)) + (is_last ? 'end ' : '');
    const pause = is_first ? pauseAt('first word') : is_last ? pauseAt('last word') : pause_ms;
    words.push({ text: frames.word(text), output_tokens: thoughts + at + count, pause_ms: pause });
  }
  return [
    { text: frames.ping, output_tokens: 0, pause_ms: pauseAt('ping') },
    { text: frames.start, output_tokens: thoughts, pause_ms: 0 },
    ...words,
    { text: frames.finish, output_tokens, pause_ms: pauseAt('finish reason') },
    ...(way === 'no usage' ? [] : [{ text: frames.usage, output_tokens, pause_ms: pauseAt('usage') }]),
    { text: frames.end, output_tokens, pause_ms: 0 },
  ];
}

/** Returns the tokens of thoughts. An upstream that bills without reporting them is believed what was shown. */
function thoughtsOf({ route, way }: BillNote, output_tokens: number): number {
  return way !== 'no usage' && route.startsWith('think') ? Math.floor(output_tokens * 0.6) : 0;
}

type Frames = { ping: string; start: string; word(text: string): string; finish: string; usage: string; end: string };

function framesOf(style: Style, bill: BillNote, order: ChatOrder, output_tokens: number, thoughts: number): Frames {
  const { input_tokens } = bill;
  if (style === 'completions') {
    const details = `"completion_tokens_details":{"reasoning_tokens":${thoughts}},"total_tokens"`;
    return {
      ping: ': processing\n\n',
      start: chunk({ role: 'assistant', content: '' }),
      word: (content) => chunk({ content }),
      finish: chunk({}, {}, 'stop'),
      usage: usageChunk(input_tokens, output_tokens).replace('"total_tokens"', details),
      end: done,
    };
  }
  const usage = order.way === 'no usage' ? {} : { input_tokens, output_tokens: 1 };
  return {
    ping: event({ type: 'ping' }),
    start:
      messageStart(usage) + event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    word: (text) => event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
    finish:
      event({ type: 'content_block_stop', index: 0 }) +
      event({ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null } }),
    usage: event({ type: 'message_delta', delta: {}, usage: { output_tokens } }),
    end: event({ type: 'message_stop' }),
  };
}

/** The pieces of an answer that is not streamed; a pause after each is where its caller may leave. */
function wholeOf(style: Style, order: ChatOrder, bill: BillNote, output_tokens: number): Step[] {
  const thoughts = thoughtsOf(bill, output_tokens);
  const content = 'wor '.repeat(output_tokens - thoughts - 1) + 'end ';
  const { input_tokens } = bill;
  const has_usage = order.way !== 'no usage';
  const usage = {
    prompt_tokens: input_tokens,
    completion_tokens: output_tokens,
    total_tokens: input_tokens + output_tokens,
    completion_tokens_details: { reasoning_tokens: thoughts },
  };
  const message = { role: 'assistant', content, refusal: null };
  const whole =
    style === 'completions'
      ? {
          id: 'chatcmpl-1',
          object: 'chat.completion',
          created: 1_700_000_000,
          model: bill.route,
          choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
          ...(has_usage && { usage }),
        }
      : {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: bill.route,
          content: [{ type: 'text', text: content }],
          stop_reason: 'end_turn',
          stop_sequence: null,
          ...(has_usage && { usage: { input_tokens, output_tokens } }),
        };
  const text = JSON.stringify(whole);
  const cuts = [0, Math.floor(text.length / 3), Math.floor((2 * text.length) / 3), text.length - 1, text.length];
  const pause_ms = order.leaves_at === 'never' ? order.pause_ms : whole_pause_ms;
  const pieces = cuts.slice(1).map((end, i) => ({ text: text.slice(cuts[i], end), output_tokens, pause_ms }));
  return [{ text: ' ', output_tokens, pause_ms }, ...pieces];
}

/** Between two pieces of a whole answer whose caller leaves: after so many of them as its point has points before it. */
export const whole_pause_ms = 120;
