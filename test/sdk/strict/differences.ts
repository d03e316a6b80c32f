import type { Json, JsonObject } from '../../../src/catalog/model.ts';
import { isObject, words } from '../../../src/styles/fields.ts';
import type { Sample } from './vendor-types.ts';

/**
 * A difference from a vendor's types that is meant: `member` of the objects that `of` finds stands there beyond the
 * type, or has a value that the type does not know (`value`: this one; `put`: what the type would take); with `absent`,
 * the type wants it and it is left out. docs/chat-translation.md shows them.
 */
export type Difference = {
  /** Fits the type of the sample. */
  type: RegExp;
  where: string;
  member: string;
  of: (holder: JsonObject) => boolean;
  why: string;
  /** It is there or not, by how far the work is when the answer is written. */
  sometimes?: true;
} & ({ absent: Json } | { value?: Json; put?: Json });

const any = () => true;
const notInside = (holder: JsonObject) => 'data' in holder || holder['object'] === 'model';
const is = (type: string) => (holder: JsonObject) => holder['type'] === type;
const chat = /ChatCompletion/;
const vendor_errors: ReadonlySet<Json> = new Set(['authentication_error', 'permission_error', 'rate_limit_error']);

/** Members of the record of a model that are ours, or of the other vendor's record: both SDKs read one record. */
const record_members = words(`
  aliases capabilities created created_at description display_name first_id has_more input_schema last_id limits
  modality object output_types owned_by pricing status type
`);
const openai_members = words('id created object owned_by data');
const anthropic_members = words('id capabilities created_at display_name type data has_more first_id last_id');

export const differences: readonly Difference[] = [
  {
    type: chat,
    where: 'chat completions',
    member: 'reasoning_content',
    of: any,
    why: 'the type has no place for thinking; DeepSeek, vLLM and their clients have it there',
  },
  {
    type: chat,
    where: 'chat completions',
    member: 'reasoning_details',
    of: any,
    why: 'thinking with its signature, as OpenRouter has it, which thinking models want back',
  },
  {
    type: chat,
    where: 'chat completions',
    member: 'extra_content',
    of: any,
    why: 'Gemini’s thought signatures, where Google’s own endpoint for this style has them',
  },
  {
    type: chat,
    where: 'chat completions, whole',
    member: 'system_fingerprint',
    of: any,
    value: null,
    why: 'OpenRouter’s SDK refuses an answer without it',
  },
  {
    type: /ChatCompletionChunk/,
    where: 'chat completions, `delta`',
    member: 'annotations',
    of: (holder) => !('refusal' in holder),
    why: 'sources of a search, which the type has in whole answers alone',
  },
  {
    type: /OpenAI\.Completion\b/,
    where: 'text completions, streamed',
    member: 'finish_reason',
    of: any,
    value: null,
    put: 'stop',
    why: 'OpenAI’s streams have null until the last choice; the type is that of whole answers',
  },
  {
    type: /OpenAI\.Completion\b/,
    where: 'text completions, streamed with `include_usage`',
    member: 'usage',
    of: any,
    value: null,
    why: 'OpenAI’s reference says so of all chunks but the last',
  },
  {
    type: /Responses/,
    where: 'responses',
    member: 'user',
    of: (holder) => holder['object'] === 'response',
    value: null,
    why: 'OpenAI’s own answers have it, as its reference shows',
  },
  {
    type: /Responses/,
    where: 'responses',
    member: 'store',
    of: (holder) => holder['object'] === 'response',
    why: 'OpenAI’s own answers have it, as its reference shows',
  },
  {
    type: /Responses/,
    where: 'responses that are not over',
    member: 'usage',
    of: any,
    value: null,
    why: 'OpenAI’s own answers have it, as its reference shows',
  },
  {
    type: /Responses/,
    where: 'responses, `custom_tool_call`',
    member: 'status',
    of: is('custom_tool_call'),
    why: 'OpenAI’s own answers have it, as those of functions do',
  },
  {
    type: /ResponseStreamEvent/,
    where: 'responses, `response.function_call_arguments.done`',
    member: 'name',
    of: is('response.function_call_arguments.done'),
    why: 'the types of the SDK’s version 6 want it',
  },
  {
    type: /Anthropic/,
    where: 'messages, `text`',
    member: 'citations',
    absent: null,
    of: is('text'),
    why: 'it came later than the block, and clients that check answers by the older form refuse null',
  },
  {
    type: /Anthropic/,
    where: 'messages, `tool_use`',
    member: 'caller',
    absent: { type: 'direct' },
    of: is('tool_use'),
    why: 'it says `direct` for every call here; clients give blocks back, and other upstreams of this style do not know it',
  },
  {
    type: /ResponseStreamEvent/,
    where: 'responses, `error`',
    member: 'error',
    of: is('error'),
    why: 'SDKs look for the code at the top, or throw what they find in `error`',
  },
  {
    type: /ResponseStreamEvent/,
    where: 'responses, `error` and `response.failed` of a stream that breaks off',
    member: 'sequence_number',
    absent: 0,
    of: (holder) => holder['type'] === 'error' || holder['type'] === 'response.failed',
    why: 'the service relays what an upstream numbers, and does not count it',
  },
  {
    type: /ErrorObject/,
    where: 'errors of OpenAI’s styles',
    member: 'request_id',
    of: any,
    why: 'the same as the header; people send the body when they ask what went wrong',
  },
  {
    type: /ErrorResponse/,
    where: 'errors of messages style',
    member: 'type',
    put: 'api_error',
    of: (holder) => 'message' in holder && !vendor_errors.has(holder['type'] ?? null),
    why: 'one word for one error in all styles: the specification says which',
  },
  ...others(/OpenAI\.Models/, openai_members),
  ...others(/Anthropic\.ModelInfo/, anthropic_members),
  ...Object.entries({
    deprecated_at: null,
    lifecycle: 'active',
    line: null,
    max_input_tokens: null,
    max_tokens: null,
    retires_at: null,
  }).map(([member, absent]) => ({
    type: /Anthropic\.ModelInfo/,
    where: 'models, for Anthropic’s SDK',
    member,
    absent,
    of: is('model'),
    why: '`limits` and `capabilities` of the record say it in words of their own',
  })),
  {
    type: /Anthropic\.ModelInfo/,
    where: 'models, for Anthropic’s SDK',
    member: 'capabilities',
    put: null,
    of: is('model'),
    why: 'a list of words, as the record has had it from the start',
  },
  ...['object', 'first_id', 'last_id'].map((member) => ({
    type: member === 'last_id' ? /\.CursorPageResponse/ : /CursorPageResponse/,
    where: 'lists of OpenAI’s styles',
    member,
    of: (holder: JsonObject) => 'data' in holder,
    why: 'OpenAI’s own lists have them, as its reference shows',
  })),
  {
    type: /TranscriptionVerbose/,
    where: 'transcripts, `verbose_json`',
    member: 'task',
    of: any,
    why: 'OpenAI’s own answers have it, as its reference shows',
  },
  ...['kind', 'content_type'].map((member) => ({
    type: /FileObject|Upload\b/,
    where: 'files',
    member,
    of: any,
    why: 'what the file is by its bytes, which says what models take it',
  })),
  ...words(`
    cancelled_at cancelling_at completed_at error_file_id errors expired_at failed_at finalizing_at in_progress_at
    output_file_id
  `)
    .values()
    .map((member) => ({
      type: /Batch\b/,
      where: 'batches',
      member,
      sometimes: true as const,
      value: null,
      of: any,
      why: 'OpenAI’s own answers have null where nothing has come, as its reference shows',
    })),
  ...['code', 'param'].map((member) => ({
    type: /ErrorResponse/,
    where: 'errors of messages style',
    member,
    of: any,
    why: 'the field at fault, as in the other styles',
  })),
  {
    type: /Moderation/,
    where: 'moderations',
    member: 'usage',
    of: any,
    why: 'tokens of models that are priced by them, where Mistral’s answers have them',
  },
  {
    type: /Video/,
    where: 'videos',
    member: 'size',
    put: '1280x720',
    of: (holder) => !['720x1280', '1280x720', '1024x1792', '1792x1024'].includes(String(holder['size'])),
    why: 'models of other providers have other sizes; empty where the caller asked for none',
  },
];

function others(type: RegExp, own: ReadonlySet<string>): Difference[] {
  const members = [...record_members].filter((member) => !own.has(member));
  const why = 'one record serves the SDKs of OpenAI and Anthropic, and callers who look for prices and inputs';
  return members.map((member) => ({ type, where: 'models', member, of: notInside, why }));
}

/** A sample without the differences that are meant. `seen` gets those that are there. */
export function withoutDifferences({ type, value, what }: Sample, seen: Set<Difference>): Sample {
  const own = differences.filter((difference) => difference.type.test(type));
  return { what, type, value: without(value as Json, own, seen) };
}

function without(value: Json, own: readonly Difference[], seen: Set<Difference>): Json {
  if (Array.isArray(value)) return value.map((each) => without(each, own, seen));
  if (!isObject(value)) return value;
  const result: JsonObject = {};
  for (const [name, member] of Object.entries(value)) {
    const difference = own.find((each) => each.member === name && isThere(each, value, member));
    if (difference) {
      seen.add(difference);
      if ('put' in difference) result[name] = difference.put;
    } else result[name] = without(member, own, seen);
  }
  for (const difference of own)
    if ('absent' in difference && difference.of(value) && !(difference.member in value)) {
      result[difference.member] = difference.absent;
      seen.add(difference);
    }
  return result;
}

function isThere(difference: Difference, holder: JsonObject, member: Json): boolean {
  if ('absent' in difference || !difference.of(holder)) return false;
  return difference.value === undefined || member === difference.value;
}
