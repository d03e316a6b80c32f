/** Counts the tokens of a conversation and its response. */
import type { JsonObject } from '../../catalog/model.ts';
import type { Conversation, Part, Turn, Usage } from '../../styles/conversation.ts';
import type { Prober } from '../../storage/probe.ts';
import { imageSize } from './chat-media.ts';
import { TokenCounter } from './tokens.ts';

/** Tokens around a message and at the start of a response, as in the public counting rules for this vocabulary. */
const message_tokens = 3;
const answer_tokens = 3;
const tool_tokens = 8;

/** Of 750 pixels of an image; of an image or document whose size is not known, or is large. */
const pixels_per_token = 750;
const medium_tokens_max = 1_600;

/** Each takes some milliseconds to look at. */
const measured_images_max = 32;

/** Size from which a repeated prefix counts as cached, and the step in which it grows. */
const cached_tokens_min = 1_024;
const cached_tokens_step = 128;

export type InputCount = Pick<Usage, 'input_tokens' | 'cached_input_tokens'>;

/**
 * The input's tokens. What stands before the last answer has been sent before, so it counts as cached;
 * `caches_marked`: only for callers who mark something for the cache.
 */
export async function countInput(
  prober: Prober,
  conversation: Conversation,
  { caches_marked }: { caches_marked: boolean },
  body: JsonObject,
): Promise<InputCount> {
  const { turns, tools, format } = conversation;
  const last_answer = turns.findLastIndex(({ role }) => role === 'assistant');
  const definitions = tools.map(({ name, description, schema }) => JSON.stringify({ name, description, schema }));
  if (format?.type === 'json_schema') definitions.push(JSON.stringify(format.schema));
  const texts = new TokenCounter();
  const frame = (await texts.count(definitions.join('\n'))) + tool_tokens * tools.length + answer_tokens;
  const counter = new PartCounter(prober, texts);
  const before = frame + (await counter.countTurns(turns.slice(0, Math.max(0, last_answer))));
  const total = before + (await counter.countTurns(turns.slice(Math.max(0, last_answer))));
  const may_cache = last_answer > 0 && (!caches_marked || isMarked(conversation, body));
  const cached_input_tokens = may_cache && before >= cached_tokens_min ? before - (before % cached_tokens_step) : 0;
  return { input_tokens: total - cached_input_tokens, cached_input_tokens };
}

class PartCounter {
  readonly #prober: Prober;
  readonly #texts: TokenCounter;
  #images_left = measured_images_max;

  constructor(prober: Prober, texts: TokenCounter) {
    this.#prober = prober;
    this.#texts = texts;
  }

  async countTurns(turns: readonly Turn[]): Promise<number> {
    let tokens = 0;
    for (const { parts } of turns) tokens += message_tokens + (await this.#countAll(parts));
    return tokens;
  }

  async #countAll(parts: readonly Part[]): Promise<number> {
    let tokens = 0;
    for (const part of parts) tokens += await this.#count(part);
    return tokens;
  }

  async #count(part: Part): Promise<number> {
    switch (part.type) {
      case 'text':
      case 'thinking':
      case 'refusal':
        return this.#texts.count(part.text);
      case 'tool_call':
        return this.#texts.count(`${part.name}\n${part.arguments}`);
      case 'tool_result':
        return this.#countAll(part.parts);
      case 'image': {
        const size = this.#images_left-- > 0 ? await imageSize(this.#prober, part.source) : undefined;
        return size
          ? Math.min(Math.ceil((size.width * size.height) / pixels_per_token), medium_tokens_max)
          : medium_tokens_max;
      }
      case 'document':
        return part.source.type === 'text' ? this.#texts.count(part.source.text) : medium_tokens_max;
      default:
        return medium_tokens_max;
    }
  }
}

function isMarked({ turns, tools }: Conversation, body: JsonObject): boolean {
  const marked = (each: object) => 'cache_control' in each;
  const definitions = Array.isArray(body['tools']) ? body['tools'] : [];
  return (
    'cache_control' in body ||
    tools.some(marked) ||
    definitions.some((each) => typeof each === 'object' && each !== null && marked(each)) ||
    turns.some(({ parts }) => parts.some(marked))
  );
}
