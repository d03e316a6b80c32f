/**
 * The moderation of the sandbox. It judges nothing: a text is flagged by the directive `[[flag]]`, or
 * `[[flag violence]]` with another category, and an image never is.
 */
import type { Json, JsonObject } from '../../catalog/model.ts';
import { isObject } from '../../styles/fields.ts';
import type { ChatReply, WholeCall } from '../provider.ts';
import { readChatScript } from './chat-script.ts';
import { behave } from './chat.ts';
import { TokenCounter } from './tokens.ts';

/** Those of OpenAI's model, and whether they are looked for in images, too. */
const categories: readonly { name: string; of_images: boolean }[] = [
  { name: 'harassment', of_images: false },
  { name: 'harassment/threatening', of_images: false },
  { name: 'sexual', of_images: true },
  { name: 'hate', of_images: false },
  { name: 'hate/threatening', of_images: false },
  { name: 'illicit', of_images: false },
  { name: 'illicit/violent', of_images: false },
  { name: 'self-harm/intent', of_images: true },
  { name: 'self-harm/instructions', of_images: true },
  { name: 'self-harm', of_images: true },
  { name: 'sexual/minors', of_images: false },
  { name: 'violence', of_images: true },
  { name: 'violence/graphic', of_images: true },
];

const usual_category = 'violence';
const flag_directive = /\[\[\s*flag(?:\s+([a-z/-]{1,32}))?\s*\]\]/giu;

/** So many characters of a text are looked at. */
const read_length_max = 65_536;

const flagged_score = 0.99;
const other_score = 0.001;

/** Other directives in the first text script the call. */
export async function moderate(call: WholeCall, signal: AbortSignal): Promise<ChatReply> {
  const { body, model, options, request_id } = call;
  const inputs = inputsOf(body['input'] ?? null);
  const script = readChatScript(inputs[0]?.texts[0] ?? '', options);
  await behave(script, false, signal);
  const counter = new TokenCounter();
  let total_tokens = 0;
  const results: JsonObject[] = [];
  for (const input of inputs) {
    for (const text of input.texts) total_tokens += await counter.count(text);
    results.push(resultOf(input));
    signal.throwIfAborted();
  }
  const usage = script.tells_usage && { usage: { prompt_tokens: total_tokens, total_tokens } };
  return { body: oneChunk({ id: `modr-${request_id}`, model, results, ...usage }) };
}

type Input = { texts: string[]; has_image: boolean };

/** One for each text; the parts of a message are one together. */
function inputsOf(input: Json): Input[] {
  if (!Array.isArray(input)) return [{ texts: [String(input)], has_image: false }];
  if (!input.some(isObject)) return input.map((text) => ({ texts: [String(text)], has_image: false }));
  const parts = input.filter(isObject);
  const texts = parts.flatMap(({ text }) => (typeof text === 'string' ? [text] : []));
  return [{ texts, has_image: texts.length < parts.length }];
}

function resultOf({ texts, has_image }: Input): JsonObject {
  const flags = new Set<string>();
  for (const text of texts)
    for (const [, name = usual_category] of text.slice(0, read_length_max).matchAll(flag_directive))
      flags.add(name.toLowerCase());
  const isFlagged = (name: string) => flags.has(name);
  const each = <Value extends Json>(valueOf: (category: (typeof categories)[number]) => Value) =>
    Object.fromEntries(categories.map((category) => [category.name, valueOf(category)]));
  return {
    flagged: categories.some(({ name }) => isFlagged(name)),
    categories: each(({ name }) => isFlagged(name)),
    category_scores: each(({ name }) => (isFlagged(name) ? flagged_score : other_score)),
    category_applied_input_types: each(({ of_images }) => [
      ...(texts.length > 0 ? ['text'] : []),
      ...(has_image && of_images ? ['image'] : []),
    ]),
  };
}

async function* oneChunk(answer: JsonObject): AsyncGenerator<Buffer> {
  yield Buffer.from(JSON.stringify(answer));
}
