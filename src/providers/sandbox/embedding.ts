/**
 * The embeddings of the sandbox: texts that share words, or parts of words, are near each other. Each word and
 * each three letters of it count toward one place of the vector, which a hash chooses.
 */
import type { Json, JsonObject } from '../../catalog/model.ts';
import { encodeVector } from '../../styles/embeddings.ts';
import type { ChatReply, WholeCall } from '../provider.ts';
import { readChatScript } from './chat-script.ts';
import { behave, refused } from './chat.ts';
import { TokenCounter, textOfTokens } from './tokens.ts';
import { partsOf, wordsOf } from './words.ts';

const dimensions_default = 256;
const dimensions_max = 1_536;

/** As at the models that the style comes from. */
const tokens_max = 8_192;

/** More of a text changes little, and takes time from others. */
const read_length_max = 65_536;

/** Directives in the first text script the call. Nothing is remembered. */
export async function embed(call: WholeCall, signal: AbortSignal): Promise<ChatReply> {
  const { body, model, options } = call;
  const dimensions = readDimensions(body);
  const inputs = await readInputs(body['input'] ?? null);
  const script = readChatScript(inputs[0]?.text ?? '', options);
  await behave(script, false, signal);
  const data: Buffer[] = [];
  for (const [index, { text }] of inputs.entries()) {
    const vector = vectorOf(index === 0 ? script.text : text, dimensions);
    const embedding = body['encoding_format'] === 'base64' ? encodeVector(vector) : vector;
    data.push(Buffer.from(JSON.stringify({ object: 'embedding', index, embedding })));
    await new Promise<void>((resolve) => setImmediate(resolve)); // others have their turn
    signal.throwIfAborted();
  }
  const prompt_tokens = inputs.reduce((sum, { tokens }) => sum + tokens, 0);
  const usage = script.tells_usage && { usage: { prompt_tokens, total_tokens: prompt_tokens } };
  return { body: bodyOf(data, { model, ...usage }) };
}

/** Vectors that were written one by one, with what comes after them. */
async function* bodyOf(data: readonly Buffer[], rest: JsonObject): AsyncGenerator<Buffer> {
  for (const [index, item] of data.entries()) {
    yield Buffer.from(index === 0 ? '{"object":"list","data":[' : ',');
    yield item;
  }
  yield Buffer.from(`],${JSON.stringify(rest).slice(1)}`);
}

function readDimensions(body: JsonObject): number {
  const dimensions = body['dimensions'] ?? dimensions_default;
  if (typeof dimensions === 'number' && dimensions <= dimensions_max) return dimensions;
  throw refused(`dimensions must be at most ${dimensions_max} for this model.`);
}

type Input = { text: string; tokens: number };

async function readInputs(input: Json): Promise<Input[]> {
  const is_list = Array.isArray(input) && typeof input[0] !== 'number';
  const inputs: Input[] = [];
  const counter = new TokenCounter();
  for (const each of is_list ? input : [input]) {
    const read = await readInput(each, counter);
    if (read.tokens > tokens_max) {
      throw refused(`input[${inputs.length}] has ${read.tokens} tokens, this model takes ${tokens_max}.`);
    }
    inputs.push(read);
  }
  return inputs;
}

async function readInput(input: Json, counter: TokenCounter): Promise<Input> {
  if (!Array.isArray(input)) return { text: String(input), tokens: await counter.count(String(input)) };
  const text = await textOfTokens(input.map(Number));
  if (text === undefined) throw refused('input has a token that is not in the vocabulary of this model (o200k_base).');
  return { text, tokens: input.length };
}

/** Returns a vector of length 1. */
function vectorOf(text: string, dimensions: number): number[] {
  const vector = Array.from({ length: dimensions }, () => 0);
  for (const [feature, count] of featuresOf(text)) {
    const hash = hashOf(feature);
    const sign = (hash & 1) === 0 ? 1 : -1;
    const at = (hash >>> 1) % dimensions;
    vector[at] = (vector[at] ?? 0) + sign * weightOf(feature) * (1 + Math.log(count));
  }
  const length = Math.hypot(...vector);
  if (length > 0) return vector.map((value) => Math.fround(value / length));
  return vector.map((_, index) => (index === 0 ? 1 : 0));
}

/** Words and, with a mark at both ends, each three letters of them; how often each occurs. */
function featuresOf(text: string): Map<string, number> {
  const features = new Map<string, number>();
  const add = (feature: string) => features.set(feature, (features.get(feature) ?? 0) + 1);
  for (const word of wordsOf(text.slice(0, read_length_max))) {
    add(word);
    for (const part of partsOf(word)) add(`${part_mark}${part}`);
  }
  if (features.size === 0) add(text); // signs alone
  return features;
}

/** Mark that begins no word. */
const part_mark = '~';
const word_weight = 1;
const part_weight = 0.4;
const little_weight = 0.2;

/** Words of up to three letters mostly say nothing of what a text is about. */
function weightOf(feature: string): number {
  if (feature.startsWith(part_mark)) return part_weight;
  return feature.length <= 3 ? little_weight : word_weight;
}

/** FNV-1a of 32 bits, mixed once more so that its last bits depend on all letters. */
function hashOf(feature: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < feature.length; at++) hash = Math.imul(hash ^ feature.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b);
  return (hash ^ (hash >>> 15)) >>> 0;
}
