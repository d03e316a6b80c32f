/** An answer in words, cut where the caller wants it cut. */
import type { ChatAnswer, ChatEvent, Conversation, Part } from '../../styles/conversation.ts';
import { beginningOf, countTokens, piecesOf, type Piece } from './tokens.ts';

/** An answer and how it comes in a stream. */
export type ServedAnswer = {
  answer: ChatAnswer;
  /** Its content, a word at a time. */
  events: ChatEvent[];
  output_tokens: number;
  reasoning_tokens: number;
};

/** Ends `answer` at the first stop sequence in its text, and at max_tokens. */
export async function cutAnswer(answer: ChatAnswer, { stop, max_tokens }: Conversation): Promise<ServedAnswer> {
  const { parts, finish } = endAtStop(answer, stop);
  const served: ServedAnswer = { answer: { parts: [], finish }, events: [], output_tokens: 0, reasoning_tokens: 0 };
  let left = max_tokens ?? Infinity;
  let calls = 0;
  for (const part of parts) {
    const index = part.type === 'tool_call' ? calls++ : 0;
    const name_tokens = part.type === 'tool_call' ? await countTokens(part.name) : 0;
    const pieces = await piecesOf(textIn(part), left - name_tokens);
    const shown = await firstPieces(pieces, left - name_tokens);
    const tokens = shown.reduce((sum, piece) => sum + piece.tokens, name_tokens);
    const texts = shown.map(({ text }) => text);
    const is_whole = shown.length === pieces.length && shown.at(-1)?.text === pieces.at(-1)?.text && tokens <= left;
    if (is_whole || texts.length > 0) {
      left -= tokens;
      served.output_tokens += tokens;
      if (part.type === 'thinking') served.reasoning_tokens += tokens;
      served.answer.parts.push(is_whole ? part : withText(part, texts.join('')));
      served.events.push(...eventsOf(part, inPortions(texts), index, is_whole));
    }
    if (!is_whole) {
      served.answer.finish = { reason: 'length' };
      break;
    }
  }
  return served;
}

/** Returns as many pieces as `tokens_max` allows; the last one may be cut. */
async function firstPieces(pieces: readonly Piece[], tokens_max: number): Promise<Piece[]> {
  let left = tokens_max;
  const over = pieces.findIndex(({ tokens }) => (left -= tokens) < 0);
  if (over === -1) return [...pieces];
  const word = pieces[over];
  const beginning = word && (await beginningOf(word.text, left + word.tokens));
  return [...pieces.slice(0, over), ...(beginning && beginning.text !== '' ? [beginning] : [])];
}

/** Long answers come in larger portions, so that a stream takes no more than about 2 s and its frames no memory. */
const portions_max = 200;

function inPortions(texts: readonly string[]): string[] {
  const size = Math.ceil(texts.length / portions_max);
  if (size <= 1) return [...texts];
  return Array.from({ length: Math.ceil(texts.length / size) }, (_, at) =>
    texts.slice(at * size, (at + 1) * size).join(''),
  );
}

function textIn(part: Part): string {
  if (part.type === 'text' || part.type === 'thinking') return part.text;
  return part.type === 'tool_call' ? part.arguments : '';
}

function withText(part: Part, text: string): Part {
  if (part.type === 'tool_call') return { ...part, arguments: text };
  return part.type === 'thinking' ? { type: 'thinking', text } : { type: 'text', text };
}

function eventsOf(part: Part, texts: readonly string[], index: number, is_whole: boolean): ChatEvent[] {
  switch (part.type) {
    case 'thinking': {
      const signed: ChatEvent[] =
        is_whole && part.signature !== undefined ? [{ type: 'signature', signature: part.signature }] : [];
      return [...texts.map((text) => ({ type: 'thinking', text }) as const), ...signed];
    }
    case 'tool_call': {
      const { id, name } = part;
      return [
        { type: 'tool_call', index, id, name },
        ...texts.map((json) => ({ type: 'tool_arguments', index, json }) as const),
      ];
    }
    default:
      return texts.map((text) => ({ type: 'text', text }) as const);
  }
}

function endAtStop(answer: ChatAnswer, stop: readonly string[]): ChatAnswer {
  const sequences = stop.filter((sequence) => sequence !== '');
  if (sequences.length === 0) return answer;
  const parts: Part[] = [];
  for (const part of answer.parts) {
    if (part.type !== 'text') {
      parts.push(part);
      continue;
    }
    const [first] = sequences
      .map((sequence) => ({ sequence, at: part.text.indexOf(sequence) }))
      .filter(({ at }) => at !== -1)
      .toSorted((a, b) => a.at - b.at);
    if (!first) {
      parts.push(part);
      continue;
    }
    if (first.at > 0) parts.push({ type: 'text', text: part.text.slice(0, first.at) });
    return { ...answer, parts, finish: { reason: 'stop_sequence', stop_sequence: first.sequence } };
  }
  return answer;
}
