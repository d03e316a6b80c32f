/** An answer in pieces of a token, cut where the caller wants it cut. */
import type { ChatAnswer, ChatEvent, Conversation, Part } from '../../styles/conversation.ts';
import { countTokens, piecesOf } from './tokens.ts';

/** An answer and how it comes in a stream. */
export type Served = {
  answer: ChatAnswer;
  /** Its content, a token or a few at a time. */
  events: ChatEvent[];
  output_tokens: number;
  reasoning_tokens: number;
};

/** Ends `answer` at the first stop sequence in its text, and at max_tokens. */
export async function serve(answer: ChatAnswer, { stop, max_tokens }: Conversation): Promise<Served> {
  const { parts, finish } = endAtStop(answer, stop);
  const served: Served = { answer: { parts: [], finish }, events: [], output_tokens: 0, reasoning_tokens: 0 };
  let left = max_tokens ?? Infinity;
  let calls = 0;
  for (const part of parts) {
    const pieces = await piecesOf(textIn(part));
    const index = part.type === 'tool_call' ? calls++ : 0;
    let count = 0;
    let tokens = part.type === 'tool_call' ? await countTokens(part.name) : 0;
    for (const piece of pieces) {
      if (tokens + piece.tokens > left) break;
      tokens += piece.tokens;
      count += 1;
    }
    const shown = pieces.slice(0, count).map(({ text }) => text);
    left -= tokens;
    served.output_tokens += tokens;
    if (part.type === 'thinking') served.reasoning_tokens += tokens;
    const is_whole = count === pieces.length;
    if (is_whole || count > 0) {
      served.answer.parts.push(is_whole ? part : withText(part, shown.join('')));
      served.events.push(...eventsOf(part, shown, index, is_whole));
    }
    if (!is_whole) {
      served.answer.finish = { reason: 'length' };
      break;
    }
  }
  return served;
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
      const seal: ChatEvent[] =
        is_whole && part.signature !== undefined ? [{ type: 'signature', signature: part.signature }] : [];
      return [...texts.map((text) => ({ type: 'thinking', text }) as const), ...seal];
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
  const found = stop.filter((sequence) => sequence !== '');
  if (found.length === 0) return answer;
  const parts: Part[] = [];
  for (const part of answer.parts) {
    if (part.type !== 'text') {
      parts.push(part);
      continue;
    }
    const [first] = found
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
