import { ApiError } from '../errors.ts';
import type { Model } from '../catalog/model.ts';
import { overflowOf } from '../providers/http/overflow.ts';
import { refusalError } from '../providers/http/refusal.ts';
import { InputRefused, type Overflow } from '../providers/provider.ts';
import type { StreamFailure } from '../styles/stream.ts';

/** Refusals of upstreams in the codes and words by which clients know them. */

/** The caller's own mistake, in the upstream's words. To be thrown. */
export function refusedInput({ type, message, overflow }: InputRefused, model: Pick<Model, 'limits'>): ApiError {
  if (type === 'content_policy_violation') return quoting(filtered, message, 'content_filter');
  if (!overflow) return new ApiError('invalid_request', message, { record_message: without_its_words });
  return quoting(overflowText(overflow, model), message, 'context_length_exceeded');
}

function quoting(text: string, words: string, code: string): ApiError {
  return new ApiError('invalid_request', `${text} The model provider's message: ${words}`, {
    code,
    record_message: text,
  });
}

const without_its_words = 'The model provider refused the request. Its words were in the answer and are not stored.';

/** Some clients look for these words. */
const filtered = 'The request was rejected as a result of the safety system.';

/**
 * Says that a request is too long. Clients that shorten the conversation by themselves look for different words of these,
 * whatever the style is: each phrase is one client's (test/chat/recognised-errors.test.ts).
 */
function overflowText({ request_tokens, limit_tokens }: Overflow, { limits }: Pick<Model, 'limits'>): string {
  const most = limit_tokens ?? limits['context_tokens'];
  const numbers =
    request_tokens !== undefined && most !== undefined && request_tokens > most
      ? `: ${request_tokens} tokens > ${most} maximum`
      : '';
  const maximum = most === undefined ? 'exceeded' : `${most} tokens`;
  return `The prompt is too long${numbers}. This model's maximum context length is ${maximum}, and the request exceeds the context window (context_length_exceeded).`;
}

const mistakes: ReadonlySet<string> = new Set([
  'invalid_request_error',
  'BadRequestError',
  'request_too_large',
  'content_policy_violation',
  'content_filter',
  '400',
  '413',
  '422',
]);

/** The caller's own mistake in a stream: some upstreams answer 200 before they have looked at the request. */
export function refusedInStream(
  { type, message, code = '' }: StreamFailure,
  secrets: readonly string[],
  model: Pick<Model, 'limits'>,
): ApiError | undefined {
  const is_mistake = mistakes.has(type) || mistakes.has(code) || overflowOf({ type, message, code }) !== undefined;
  if (!is_mistake) return undefined;
  const body = JSON.stringify({ type, message, code });
  const refusal = refusalError({ status: 400, retry_after: undefined, body }, secrets);
  return refusal instanceof InputRefused ? refusedInput(refusal, model) : undefined;
}
