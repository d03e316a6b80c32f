import type { Json, JsonObject } from '../../catalog/model.ts';
import { ApiError } from '../../errors.ts';
import type { ChatAnswer, FinishReason, Part, Usage } from '../conversation.ts';
import { isObject } from '../fields.ts';
import { Unfinished } from '../codec.ts';
import { readUsage } from './usage.ts';

/** One of the answers in an answer of Gemini's `generateContent`. */
export type Candidate = JsonObject;

/**
 * Reads an answer of Gemini's style: one answer per candidate. Throws ApiError 400 if the prompt was found unfit,
 * which is told with status 200, and Error for what is no answer.
 */
export function readGeminiAnswers(value: unknown, request_id: string): ChatAnswer[] {
  const body: unknown = Array.isArray(value) ? value[0] : value;
  if (!isObject(body)) throw new Error('The answer is no JSON object.');
  if (isObject(body['error'])) throw new Error('The answer is an error.');
  const candidates = candidatesOf(body);
  const blocked = blockReason(body);
  if (candidates.length === 0 && blocked !== undefined)
    throw new ApiError('invalid_request', blocked, { code: 'content_filter' });
  if (candidates.length === 0) throw new Error('The answer has no candidates.');
  const usage = usageOf(body);
  const id = body['responseId'];
  return candidates.map((candidate, index) => ({
    ...readCandidate(candidate, `${request_id}_${index}_`),
    ...(typeof id === 'string' && id !== '' && { id }),
    ...(usage && { usage }),
  }));
}

function readCandidate(candidate: Candidate, call_prefix: string): Pick<ChatAnswer, 'parts' | 'finish'> {
  const parts = partsOf(candidate, call_prefix, 0);
  const finish = readFinishReason(candidate, {
    has_calls: parts.some(({ type }) => type === 'tool_call'),
    has_content: parts.length > 0,
  });
  if ('problem' in finish) throw new Unfinished(finish.problem);
  if (finish.refusal !== undefined) parts.push({ type: 'refusal', text: finish.refusal });
  return { parts, finish: { reason: finish.reason } };
}

/** Returns the candidates in the order of their indexes. */
export function candidatesOf(body: JsonObject): Candidate[] {
  const { candidates } = body;
  const list = Array.isArray(candidates) ? candidates.filter(isObject) : [];
  return list.toSorted((a, b) => Number(a['index'] ?? 0) - Number(b['index'] ?? 0));
}

/**
 * Returns the parts of a candidate. Code that Google ran and files are left out. Calls without an id get one
 * of our own, by their number: `calls_before` have come already.
 */
export function partsOf(candidate: Candidate, call_prefix: string, calls_before: number): Part[] {
  const content = isObject(candidate['content']) ? candidate['content'] : {};
  const list = Array.isArray(content['parts']) ? content['parts'].filter(isObject) : [];
  let calls = calls_before;
  return list.flatMap((part): Part[] => {
    const { text, thought, thoughtSignature, functionCall } = part;
    const signed =
      typeof thoughtSignature === 'string' && thoughtSignature !== '' ? { thought_signature: thoughtSignature } : {};
    if (isObject(functionCall)) {
      const { id, name, args } = functionCall;
      if (typeof name !== 'string' || name === '') return [];
      const own_id = `call_${call_prefix}${calls++}`;
      const call_id = typeof id === 'string' && id !== '' ? id : own_id;
      return [{ type: 'tool_call', id: call_id, name, arguments: argumentsIn(args), ...signed }];
    }
    if (typeof text !== 'string') return [];
    if (thought === true) return text === '' ? [] : [{ type: 'thinking', text }];
    return text === '' && !('thought_signature' in signed) ? [] : [{ type: 'text', text, ...signed }];
  });
}

function argumentsIn(args: Json | undefined): string {
  return args === undefined || args === null ? '{}' : JSON.stringify(args);
}

/** Returns the reason why the prompt is blocked; undefined if it is not. */
export function blockReason(body: JsonObject): string | undefined {
  const feedback = body['promptFeedback'];
  const reason = isObject(feedback) ? feedback['blockReason'] : undefined;
  if (typeof reason !== 'string' || reason === 'BLOCK_REASON_UNSPECIFIED') return undefined;
  return `The model provider found the prompt unfit (${wordOf(reason)}).`;
}

/** A word of the upstream's, unless it is none. */
function wordOf(reason: string): string {
  return /^[A-Z_]{1,40}$/.test(reason) ? reason : 'OTHER';
}

export function usageOf(body: JsonObject): Partial<Usage> | undefined {
  return readUsage(body['usageMetadata']);
}

const refusals: ReadonlySet<string> = new Set([
  'SAFETY',
  'RECITATION',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
  'MODEL_ARMOR',
  'ESCALATION',
]);

/** The model went wrong: what there is of its answer is not what it meant. */
const failures: ReadonlySet<string> = new Set([
  'MALFORMED_FUNCTION_CALL',
  'MALFORMED_RESPONSE',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MISSING_THOUGHT_SIGNATURE',
]);

/** An answer all the same if there is anything in it. */
const failures_when_empty: ReadonlySet<string> = new Set([
  'OTHER',
  'LANGUAGE',
  'NO_IMAGE',
  'IMAGE_OTHER',
  'FINISH_REASON_UNSPECIFIED',
]);

type Finish = { reason: FinishReason; refusal?: string } | { problem: string };

/** Reads a `finishReason` together with the content; `problem` if it is no end of a response. */
export function readFinishReason(
  { finishReason, finishMessage }: Candidate,
  { has_calls, has_content }: { has_calls: boolean; has_content: boolean },
): Finish {
  const reason = typeof finishReason === 'string' ? finishReason : '';
  if (reason === 'MAX_TOKENS') return { reason: 'length' };
  if (refusals.has(reason)) {
    const has_message = typeof finishMessage === 'string' && finishMessage !== '';
    return { reason: 'refusal', ...(has_message && { refusal: finishMessage }) };
  }
  if (failures.has(reason) || (failures_when_empty.has(reason) && !has_content))
    return { problem: `The model could not finish its answer (${reason}).` };
  return { reason: has_calls ? 'tool_calls' : 'stop' };
}
