import fc from 'fast-check';
import type { Style, UpstreamStyle } from './by-name.ts';

/** A model's output, piece by piece, and the streams that carry it on the wire of each style. */

export type Piece =
  | { say: 'text' | 'thinking'; text: string }
  | { say: 'signature'; text: string }
  | { say: 'call'; index: number; name: string }
  | { say: 'arguments'; index: number; text: string };

/** Upstreams whose streams are written here. */
export type WireStyle = UpstreamStyle;

/** The answer that results. */
export type CollectedAnswer = {
  text: string;
  thinking: string;
  calls: { id: string; name: string; arguments: string }[];
  finish: string;
};

export const upstream_model = 'upstream-model';

const units = ['a', '"', '\n', 'ß', '水', '😀', '\u2028', 'data: '];
const text = fc.string({ unit: fc.constantFrom(...units, '\\'), minLength: 1, maxLength: 6 });
/**
 * Without a backslash: JSON.parse of Node 26.10 gives a name with an escape the wrong text where a name that was parsed
 * before is what stands in front of that escape's last character, as `a\` and `a"` behind a name `\`.
 */
const member_name = fc.string({ unit: fc.constantFrom(...units), minLength: 1, maxLength: 6 });

const text_piece: fc.Arbitrary<Piece> = fc
  .tuple(fc.constantFrom('text' as const, 'thinking' as const), text)
  .map(([say, content]) => ({ say, text: content }));

/** Arguments in pieces; some calls have none. */
const argumentPieces = fc.oneof(
  fc.constant<string[]>([]),
  fc
    .tuple(
      fc.dictionary(member_name, fc.oneof(text, fc.integer(), fc.constant({ model: 'x' })), { maxKeys: 3 }),
      fc.array(fc.nat(60), { maxLength: 5 }),
    )
    .map(([object, cuts]) => piecesOf(JSON.stringify(object), cuts)),
);

function piecesOf(whole: string, cuts: readonly number[]): string[] {
  const places = [0, ...cuts.filter((at) => at > 0 && at < whole.length).toSorted((a, b) => a - b), whole.length];
  return places
    .slice(1)
    .map((to, index) => whole.slice(places[index], to))
    .filter((piece) => piece !== '');
}

/** Calls one after the other, as messages style has them, or one piece of each in turn. */
function calls(all: readonly string[][], is_interleaved: boolean): Piece[] {
  const begin = (index: number): Piece => ({ say: 'call', index, name: `tool_${index}` });
  const argument = (index: number, piece: string): Piece => ({ say: 'arguments', index, text: piece });
  if (!is_interleaved)
    return all.flatMap((pieces, index) => [begin(index), ...pieces.map((piece) => argument(index, piece))]);
  const longest = Math.max(0, ...all.map((pieces) => pieces.length));
  const rounds = Array.from({ length: longest }, (_, round) =>
    all.flatMap((pieces, index) => (pieces[round] === undefined ? [] : [argument(index, pieces[round])])),
  );
  return [...all.keys()].map(begin).concat(rounds.flat());
}

export function scripts(style: WireStyle): fc.Arbitrary<Piece[]> {
  return fc
    .tuple(
      fc.array(text_piece, { minLength: 1, maxLength: 5 }),
      fc.array(argumentPieces, { maxLength: 3 }),
      fc.boolean(),
      fc.boolean(),
    )
    .map(([words, all, is_interleaved, is_signed]) => {
      const ordered = words.toSorted((a, b) => Number(b.say === 'thinking') - Number(a.say === 'thinking'));
      const thoughts = ordered.filter(({ say }) => say === 'thinking');
      const signature: Piece[] = is_signed && thoughts.length > 0 ? [{ say: 'signature', text: 'c2lnbmF0dXJl' }] : [];
      return [
        ...thoughts,
        ...signature,
        ...ordered.slice(thoughts.length),
        ...calls(all, is_interleaved && style === 'completions'),
      ];
    });
}

export function answerOf(script: readonly Piece[], style: Style): CollectedAnswer {
  const joined = (say: Piece['say']) =>
    script.map((piece) => (piece.say === say && 'text' in piece ? piece.text : '')).join('');
  const begun = script.flatMap((piece) => (piece.say === 'call' ? [piece] : []));
  const calls_made = begun.map(({ index, name }) => ({
    id: `call_${index}`,
    name,
    arguments: script.map((piece) => (piece.say === 'arguments' && piece.index === index ? piece.text : '')).join(''),
  }));
  const finish = style === 'completions' ? ['tool_calls', 'stop'] : ['tool_use', 'end_turn'];
  return {
    text: joined('text'),
    thinking: joined('thinking'),
    calls: calls_made,
    finish: finish[calls_made.length > 0 ? 0 : 1] ?? '',
  };
}

/** The framing of the events on the wire. */
export type Framing = { end: string; space: string; comments: boolean; spread: boolean };

export const framings: fc.Arbitrary<Framing> = fc.record({
  end: fc.constantFrom('\n', '\r\n', '\r'),
  space: fc.constantFrom(' ', ''),
  comments: fc.boolean(),
  spread: fc.boolean(),
});

const events_of: { readonly [style in WireStyle]: (script: readonly Piece[]) => Event[] } = {
  completions: completionsEvents,
  messages: messagesEvents,
  responses: responsesEvents,
  gemini: geminiEvents,
  converse: converseEvents,
};

export function onWire(style: WireStyle, script: readonly Piece[], { end, space, comments, spread }: Framing): string {
  const events = events_of[style](script);
  const frames = events.map((event) => {
    const [type, content] = typeof event === 'string' ? [undefined, event] : contentOf(style, event);
    const name = type === undefined ? '' : `event:${space}${type}${end}`;
    const data = typeof content === 'string' ? content : JSON.stringify(content, undefined, spread ? 1 : undefined);
    const lines = data.split('\n').map((line) => `data:${space}${line}${end}`);
    return `${comments ? `: 水${end}${end}` : ''}${name}${lines.join('')}${end}`;
  });
  return frames.join('');
}

type Event = Record<string, unknown> | string;

/** The name of an event on the wire, and its data. Those of Converse have the name as their only member. */
function contentOf(style: WireStyle, event: Record<string, unknown>): [string | undefined, unknown] {
  if (style === 'converse') return Object.entries(event)[0] ?? [undefined, event];
  return [style === 'messages' || style === 'responses' ? String(event['type']) : undefined, event];
}

function completionsEvents(script: readonly Piece[]): Event[] {
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: upstream_model,
    choices: [{ index: 0, delta, finish_reason }],
  });
  const deltas = script.map((piece): object => {
    switch (piece.say) {
      case 'text':
        return { content: piece.text };
      case 'thinking':
        return { reasoning_content: piece.text };
      case 'signature':
        return { reasoning_details: [{ type: 'reasoning.text', signature: piece.text }] };
      case 'call':
        return {
          tool_calls: [
            {
              index: piece.index,
              id: `call_${piece.index}`,
              type: 'function',
              function: { name: piece.name, arguments: '' },
            },
          ],
        };
      case 'arguments':
        return { tool_calls: [{ index: piece.index, function: { arguments: piece.text } }] };
    }
  });
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  return [
    chunk({ role: 'assistant', content: '' }),
    ...deltas.map((delta) => chunk(delta)),
    chunk({}, answerOf(script, 'completions').finish),
    { ...chunk({}), choices: [], usage },
    '[DONE]',
  ];
}

/** Items one after the other, but calls, whose arguments may come in turn; the seal comes with the end of a thought. */
function responsesEvents(script: readonly Piece[]): Event[] {
  const response = { id: 'resp_1', object: 'response', model: upstream_model, status: 'in_progress', output: [] };
  const events: Event[] = [
    { type: 'response.created', response },
    { type: 'response.in_progress', response },
  ];
  const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
  let places = 0;
  let open: { kind: string; place: number; item: object } | undefined;
  const begun = new Map<number, { place: number; item: object }>();
  const close = (more: object = {}) => {
    if (open) {
      const { place, item } = open;
      events.push({ type: 'response.output_item.done', output_index: place, item: { ...item, ...more } });
    }
    open = undefined;
  };
  const begin = (item: object): number => {
    events.push({ type: 'response.output_item.added', output_index: places, item });
    return places++;
  };
  for (const piece of script) {
    if (piece.say === 'text' || piece.say === 'thinking') {
      if (open?.kind !== piece.say) {
        close();
        const item = piece.say === 'text' ? { type: 'message', content: [] } : { type: 'reasoning', summary: [] };
        open = { kind: piece.say, place: begin(item), item };
      }
      const name = piece.say === 'text' ? 'output_text' : 'reasoning_summary_text';
      events.push({ type: `response.${name}.delta`, output_index: open.place, delta: piece.text });
    } else if (piece.say === 'signature') {
      close({ encrypted_content: piece.text });
    } else if (piece.say === 'call') {
      close();
      const item = { type: 'function_call', call_id: `call_${piece.index}`, name: piece.name, arguments: '' };
      begun.set(piece.index, { place: begin(item), item });
    } else if (piece.say === 'arguments') {
      const output_index = begun.get(piece.index)?.place;
      events.push({ type: 'response.function_call_arguments.delta', output_index, delta: piece.text });
    }
  }
  close();
  const script_calls = answerOf(script, 'completions').calls;
  for (const [index, { place: output_index, item }] of begun) {
    const done = { ...item, arguments: script_calls[index]?.arguments || '{}' };
    events.push({ type: 'response.output_item.done', output_index, item: done });
  }
  return [...events, { type: 'response.completed', response: { ...response, status: 'completed', usage } }];
}

function messagesEvents(script: readonly Piece[]): Event[] {
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: upstream_model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 1 },
  };
  const events: Event[] = [{ type: 'message_start', message }];
  let index = -1;
  let open = '';
  const begin = (kind: string, content_block: object) => {
    if (open !== '') events.push({ type: 'content_block_stop', index });
    index += 1;
    open = kind;
    events.push({ type: 'content_block_start', index, content_block });
  };
  const delta = (value: object) => events.push({ type: 'content_block_delta', index, delta: value });
  for (const piece of script) {
    switch (piece.say) {
      case 'text':
        if (open !== 'text') begin('text', { type: 'text', text: '' });
        delta({ type: 'text_delta', text: piece.text });
        break;
      case 'thinking':
        if (open !== 'thinking') begin('thinking', { type: 'thinking', thinking: '', signature: '' });
        delta({ type: 'thinking_delta', thinking: piece.text });
        break;
      case 'signature':
        delta({ type: 'signature_delta', signature: piece.text });
        break;
      case 'call':
        begin(`call_${piece.index}`, { type: 'tool_use', id: `call_${piece.index}`, name: piece.name, input: {} });
        break;
      case 'arguments':
        delta({ type: 'input_json_delta', partial_json: piece.text });
    }
  }
  if (open !== '') events.push({ type: 'content_block_stop', index });
  const { finish } = answerOf(script, 'messages');
  return [
    ...events,
    { type: 'ping' },
    { type: 'message_delta', delta: { stop_reason: finish, stop_sequence: null }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ];
}

/** A call comes whole, and the signature in the first of them; what the answer ended for comes with an empty text. */
function geminiEvents(script: readonly Piece[]): Event[] {
  const chunk = (part: object, more: object = {}): Exclude<Event, string> => ({
    candidates: [{ content: { parts: [part], role: 'model' }, index: 0, ...more }],
    usageMetadata: { promptTokenCount: 10, totalTokenCount: 10 },
    modelVersion: upstream_model,
    responseId: 'resp-1',
  });
  const signature = script.find(({ say }) => say === 'signature');
  const { calls: script_calls } = answerOf(script, 'completions');
  const chunks = script.flatMap((piece): Event[] => {
    if (piece.say === 'text') return [chunk({ text: piece.text })];
    if (piece.say === 'thinking') return [chunk({ text: piece.text, thought: true })];
    const call = piece.say === 'call' ? script_calls[piece.index] : undefined;
    if (!call) return [];
    const { id, name, arguments: json } = call;
    const thoughtSignature = call === script_calls[0] && signature && 'text' in signature ? signature.text : undefined;
    const args = json === '' ? {} : { args: JSON.parse(json) };
    return [
      chunk({ functionCall: { id, name, ...args }, ...(thoughtSignature !== undefined && { thoughtSignature }) }),
    ];
  });
  const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 };
  return [...chunks, { ...chunk({ text: '' }, { finishReason: 'STOP' }), usageMetadata }];
}

/** Blocks one after the other; the usage comes last. */
function converseEvents(script: readonly Piece[]): Event[] {
  const events: Event[] = [{ messageStart: { role: 'assistant' } }];
  let contentBlockIndex = -1;
  let open = '';
  const begin = (kind: string, start?: object) => {
    if (open !== '') events.push({ contentBlockStop: { contentBlockIndex } });
    contentBlockIndex += 1;
    open = kind;
    if (start) events.push({ contentBlockStart: { contentBlockIndex, start } });
  };
  const delta = (value: object) => events.push({ contentBlockDelta: { contentBlockIndex, delta: value } });
  for (const piece of script) {
    switch (piece.say) {
      case 'text':
        if (open !== 'text') begin('text');
        delta({ text: piece.text });
        break;
      case 'thinking':
        if (open !== 'thinking') begin('thinking');
        delta({ reasoningContent: { text: piece.text } });
        break;
      case 'signature':
        delta({ reasoningContent: { signature: piece.text } });
        break;
      case 'call':
        begin(`call_${piece.index}`, { toolUse: { toolUseId: `call_${piece.index}`, name: piece.name } });
        break;
      case 'arguments':
        delta({ toolUse: { input: piece.text } });
    }
  }
  if (open !== '') events.push({ contentBlockStop: { contentBlockIndex } });
  const { finish: stopReason } = answerOf(script, 'messages');
  const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15 };
  return [...events, { messageStop: { stopReason } }, { metadata: { usage, metrics: { latencyMs: 9 } } }];
}
