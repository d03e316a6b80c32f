import type { Json, JsonObject } from '../catalog/model.ts';
import { ApiError } from '../errors.ts';
import { checkShape } from '../lib/json-shape.ts';
import { memberOf, isObject, mistake, readCount, readText, words, wrongType } from './fields.ts';
import { withMembers } from './model-name.ts';
import { addText, type TextSize } from './usage.ts';
import { usage_format } from './completions/usage.ts';
import { cutVectors, vectorNumber, withVectors } from './vectors.ts';

/** The format of `/v1/embeddings`; its responses are never streamed. */
export const embeddings = {
  name: 'embeddings',
  members: {
    sdk: words('input model dimensions encoding_format user'),
    vendor: words('input_type task truncate truncation'),
  },
} as const;

/** The request of a body of `/v1/embeddings`, as far as routing, money and the response's form need it. */
export type EmbeddingRequest = {
  readonly style: typeof embeddings;
  readonly stream: false;
  readonly n: 1;
  body: JsonObject;
  model: string;
  /** Number of vectors. */
  count: number;
  encoding_format: 'float' | 'base64';
  text_size: TextSize;
  /** Inputs that came as tokens have these. */
  tokens: number;
};

/** As many as the style allows. */
const inputs_max = 2_048;

/** Reads a body; everything but its input is left to whoever answers. Throws ApiError 400 naming the field. */
export function readEmbeddingRequest(body: unknown): EmbeddingRequest {
  if (!isObject(body)) throw new ApiError('invalid_request', 'The body must be a JSON object.');
  const model = readText(body, 'model', 'model');
  if (model === undefined) throw mistake('model', 'is required');
  if (model === '') throw mistake('model', 'must be a non-empty string');
  const format = readText(body, 'encoding_format', 'encoding_format') ?? 'float';
  if (format !== 'float' && format !== 'base64') throw mistake('encoding_format', 'must be float or base64');
  readCount(body, 'dimensions', 'dimensions', 1);
  const input = memberOf(body, 'input');
  if (input === undefined) throw mistake('input', 'is required');
  return { style: embeddings, stream: false, n: 1, body, model, encoding_format: format, ...measure(input) };
}

/** Of one text, several, the tokens of one, or those of several. */
function measure(input: Json): Pick<EmbeddingRequest, 'count' | 'text_size' | 'tokens'> {
  const text_size: TextSize = { ascii_bytes: 0, other_bytes: 0 };
  if (typeof input === 'string') {
    addInput(text_size, input, 'input');
    return { count: 1, text_size, tokens: 0 };
  }
  if (!Array.isArray(input)) throw wrongType('input', 'a string or an array', input);
  const [first] = input;
  if (first === undefined) throw mistake('input', 'must not be empty');
  if (typeof first === 'number') return { count: 1, text_size, tokens: countTokens(input, 'input') };
  if (input.length > inputs_max) throw mistake('input', `may have at most ${inputs_max} items (got ${input.length})`);
  if (typeof first === 'string') {
    for (const [index, text] of input.entries()) addInput(text_size, text, `input[${index}]`);
    return { count: input.length, text_size, tokens: 0 };
  }
  const tokens = input.reduce<number>((sum, each, index) => sum + countTokens(each, `input[${index}]`), 0);
  return { count: input.length, text_size, tokens };
}

function addInput(size: TextSize, text: Json, at: string): void {
  if (typeof text !== 'string') throw wrongType(at, 'a string', text);
  if (text === '') throw mistake(at, 'must not be empty');
  addText(size, text);
}

function countTokens(tokens: Json, at: string): number {
  if (!Array.isArray(tokens)) throw wrongType(at, 'an array of tokens', tokens);
  if (tokens.length === 0) throw mistake(at, 'must not be empty');
  const wrong = tokens.findIndex((token) => typeof token !== 'number' || !Number.isSafeInteger(token) || token < 0);
  if (wrong !== -1) throw mistake(`${at}[${wrong}]`, 'must be a token, a whole number of at least 0');
  return tokens.length;
}

export type RenderedEmbeddings = {
  bytes: Buffer;
  /** By the upstream's own count; undefined if it told none that can be believed. */
  input_tokens: number | undefined;
};

/**
 * Takes an upstream's answer to the caller: its bytes as they are but for the model's name, and vectors in the
 * other form where the upstream did not give the one that was asked for, and the tokens as they were counted here where
 * it told none. Others have their turn meanwhile. Rejects with Error if it is no answer.
 */
export async function renderEmbeddings(
  request: EmbeddingRequest,
  bytes: Buffer,
  model: string,
  input_tokens_counted: number,
): Promise<RenderedEmbeddings> {
  const { frame, vectors } = cutVectors(bytes);
  const text = frame.toString('utf8');
  checkShape(text);
  const body: unknown = JSON.parse(text);
  if (!isObject(body)) throw new Error('The answer is no JSON object.');
  const { data, usage } = body;
  if (!Array.isArray(data) || data.length !== request.count)
    throw new Error(`The answer has not ${request.count} vectors.`);
  const rendered = await inForm(data, vectors, request.encoding_format);
  const input_tokens = tokensIn(usage);
  const counted = { prompt_tokens: input_tokens_counted, total_tokens: input_tokens_counted };
  const named =
    input_tokens === undefined
      ? Buffer.from(JSON.stringify({ ...body, model, usage: counted }))
      : withMembers(frame, { model });
  return { bytes: withVectors(named, rendered), input_tokens };
}

/** Some servers leave out `prompt_tokens`; without an output the total is the input. */
function tokensIn(usage: Json | undefined): number | undefined {
  if (!isObject(usage)) return undefined;
  const { prompt_tokens, total_tokens } = usage;
  const read = usage_format.read({ prompt_tokens: prompt_tokens ?? total_tokens ?? null });
  return read?.input_tokens;
}

/** So many bytes of vectors are read and written in one turn: some ten milliseconds. */
const turn_bytes = 262_144;

/** All vectors that were cut out, those of `data` in this form. */
async function inForm(
  data: readonly Json[],
  vectors: readonly Buffer[],
  format: EmbeddingRequest['encoding_format'],
): Promise<Buffer[]> {
  const rendered = [...vectors];
  let bytes = 0;
  for (const item of data) {
    const number = vectorNumber(isObject(item) ? item['embedding'] : undefined);
    const vector = number === undefined ? undefined : vectors[number];
    if (number === undefined || vector === undefined) throw new Error('A vector of the answer is none.');
    rendered[number] = vectorInForm(vector, format);
    bytes += vector.length;
    if (bytes < turn_bytes) continue;
    bytes = 0;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return rendered;
}

/** The same bytes if they have the form already. */
function vectorInForm(bytes: Buffer, format: EmbeddingRequest['encoding_format']): Buffer {
  const vector: unknown = JSON.parse(bytes.toString('utf8'));
  if (typeof vector === 'string') return format === 'base64' ? bytes : Buffer.from(JSON.stringify(decoded(vector)));
  if (!Array.isArray(vector) || vector.length === 0) throw new Error('A vector of the answer is none.');
  return format === 'float' ? bytes : Buffer.from(JSON.stringify(encodeVector(vector.map(Number))));
}

const float_bytes = 4;

/** 32-bit floats, the least significant byte first, as base64. */
export function encodeVector(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * float_bytes);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * float_bytes);
  return bytes.toString('base64');
}

function decoded(text: string): number[] {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length === 0 || bytes.length % float_bytes !== 0) throw new Error('A vector of the answer is cut.');
  return Array.from({ length: bytes.length / float_bytes }, (_, index) => bytes.readFloatLE(index * float_bytes));
}
