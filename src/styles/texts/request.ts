import type { Json, JsonObject } from '../../catalog/model.ts';
import type { ChatRequest } from '../codec.ts';
import { choices_max, readWantsUsage } from '../completions/request.ts';
import { readStop } from '../completions/settings.ts';
import type { Conversation, Turn } from '../conversation.ts';
import { memberOf, mistake, notCarried, readBoolean, readCount, readNumber, readText, wrongType } from '../fields.ts';
import { readModel } from '../request.ts';

/** Of chat completions; texts had five. */
const logprobs_max = 20;

/** The prompts of a request: texts, or texts as tokens of one model. */
type Prompts = { texts: string[] } | { tokens: number[][] };

/** Reads what routing and money need. Throws ApiError 400 naming the field. */
export function readHead(body: JsonObject): Omit<ChatRequest, 'style' | 'body'> {
  const model = readModel(body);
  const prompts = countOf(readPrompts(body));
  const stream = readBoolean(body, 'stream', 'stream') ?? false;
  const per_prompt = readCount(body, 'n', 'n', 1) ?? 1;
  const best_of = readCount(body, 'best_of', 'best_of', 1) ?? per_prompt;
  if (best_of < per_prompt) throw mistake('best_of', 'must be at least n');
  if (stream && best_of > per_prompt) throw mistake('best_of', 'must not be above n in a stream');
  const n = prompts * best_of;
  if (n > choices_max) throw mistake(prompts > 1 ? 'prompt' : 'n', `must not ask for more than ${choices_max} texts`);
  const max_tokens = readCount(body, 'max_tokens', 'max_tokens', 1);
  const wants_usage = readWantsUsage(body, stream);
  return { model, stream, wants_usage, max_tokens, thinking_budget: 0, n };
}

function readPrompts(body: JsonObject): Prompts {
  const prompt = memberOf(body, 'prompt');
  if (prompt === undefined) throw mistake('prompt', 'is required');
  if (typeof prompt === 'string') return { texts: [prompt] };
  if (!Array.isArray(prompt)) throw wrongType('prompt', 'a string or an array', prompt);
  const [first] = prompt;
  if (first === undefined) throw mistake('prompt', 'must not be empty');
  if (typeof first === 'number') return { tokens: [readTokens(prompt, 'prompt')] };
  if (Array.isArray(first)) return { tokens: prompt.map((each, index) => readTokens(each, `prompt[${index}]`)) };
  const texts = prompt.map((each, index) => {
    if (typeof each === 'string') return each;
    throw wrongType(`prompt[${index}]`, 'a string', each);
  });
  return { texts };
}

function readTokens(value: Json, at: string): number[] {
  if (!Array.isArray(value)) throw wrongType(at, 'an array of tokens', value);
  return value.map((token, index) => {
    if (typeof token === 'number' && Number.isSafeInteger(token) && token >= 0) return token;
    throw mistake(`${at}[${index}]`, 'must be a token, a whole number of at least 0');
  });
}

function countOf(prompts: Prompts): number {
  return 'texts' in prompts ? prompts.texts.length : prompts.tokens.length;
}

const continuing = `You continue texts. Answer with what comes after the user's text and nothing else: its continuation, or the answer if it asks for something. Do not repeat the text, and do not comment on it.`;
const filling = `You fill gaps in texts. The user sends what stands before a gap in <before> and what stands after it in <after>. Answer with what stands in the gap and nothing else. Do not repeat what is around it, and do not comment on it.`;

/** Bytes of ASCII for one token of a prompt, where tokens are counted by bytes. */
const token_bytes = 4;

function suffixOf(body: JsonObject): string {
  return readText(body, 'suffix', 'suffix') ?? '';
}

/** Counts the bytes of the template around a prompt, and of prompts that came as tokens. */
export function addedBytes(body: JsonObject): number {
  const prompts = readPrompts(body);
  if ('tokens' in prompts) return token_bytes * prompts.tokens.reduce((sum, { length }) => sum + length, 0);
  return (suffixOf(body) === '' ? continuing : filling).length;
}

/** The lengths of the prompts, which an answer that repeats them begins with. */
export function echoedLengths(body: JsonObject): number[] {
  if (body['echo'] !== true) return [];
  const prompts = readPrompts(body);
  return 'texts' in prompts ? prompts.texts.map(({ length }) => length) : [];
}

/** The prompt of a request for one text, if it is to be repeated before the answer. */
export function echoOf(body: JsonObject): string {
  if (body['echo'] !== true) return '';
  const prompts = readPrompts(body);
  return 'texts' in prompts ? (prompts.texts[0] ?? '') : '';
}

/** Tells whether the answer has the probabilities of its tokens. */
export function wantsLogprobs(body: JsonObject): boolean {
  return memberOf(body, 'logprobs') !== undefined;
}

/** Writes a prompt as a chat, for an upstream of another style. Throws ApiError 400 naming the field. */
export function readTextRequest(body: JsonObject): Conversation {
  const turns = turnsOf(onlyText(readPrompts(body)), suffixOf(body));
  const n = readCount(body, 'n', 'n', 1) ?? 1;
  readBoolean(body, 'echo', 'echo');
  if ((readCount(body, 'best_of', 'best_of', 1) ?? n) > n) throw notCarried('best_of', 'A choice among several texts');
  if (n > 1 && body['stream'] === true) throw notCarried('n', 'A stream of several texts');
  const logprobs = readCount(body, 'logprobs', 'logprobs', 0);
  if (logprobs !== undefined && logprobs > logprobs_max) throw mistake('logprobs', `must be at most ${logprobs_max}`);
  if (logprobs !== undefined && body['echo'] === true)
    throw notCarried('echo', 'The probabilities of the tokens of a prompt');
  const { seed } = body;
  return {
    turns,
    tools: [],
    stop: readStop(body),
    max_tokens: readCount(body, 'max_tokens', 'max_tokens', 1),
    temperature: readNumber(body, 'temperature', 'temperature'),
    top_p: readNumber(body, 'top_p', 'top_p'),
    top_k: readNumber(body, 'top_k', 'top_k'),
    seed: typeof seed === 'number' ? seed : undefined,
    user: readText(body, 'user', 'user'),
    logprobs,
  };
}

function onlyText(prompts: Prompts): string {
  if ('tokens' in prompts) throw notCarried('prompt', 'A prompt of tokens');
  const [text = '', ...others] = prompts.texts;
  if (others.length > 0) throw notCarried('prompt', 'More than one prompt');
  if (text.trim() === '') throw mistake('prompt', 'must hold some text for this model');
  return text;
}

function turnsOf(prompt: string, suffix: string): Turn[] {
  const has_gap = suffix !== '';
  const text = has_gap ? `<before>${prompt}</before>\n<after>${suffix}</after>` : prompt;
  return [
    { role: 'system', parts: [{ type: 'text', text: has_gap ? filling : continuing }] },
    { role: 'user', parts: [{ type: 'text', text }] },
  ];
}
