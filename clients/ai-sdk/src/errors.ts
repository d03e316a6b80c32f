import { APICallError } from '@ai-sdk/provider';
import { ApiError, ConnectionError, MedleyError, TaskFailedError } from '@medley/client';

/** The service asks to repeat these. A 402, a 403 and a failed task stay what they are. */
const repeatable_statuses: readonly number[] = [429, 502, 503, 504];

/** Tells whether an answer may be asked for again, by its status and `x-should-retry`. */
function isRepeatable(status: number, headers: Record<string, string>): boolean {
  return headers['x-should-retry'] !== 'false' && repeatable_statuses.includes(status);
}

/** The statuses that the calls of OpenAI's SDK have for a task that failed. */
const failure_statuses: Readonly<Record<string, number>> = {
  content_policy_violation: 400,
  invalid_request: 400,
  timeout: 504,
};

export type RequestFacts = { url: string; values: unknown };

/**
 * Turns an error of the client into an error of the AI SDK. Reasons of an abort and errors of others stay as they are.
 * `is_safe`: the request made nothing, or carries a key of the caller's under which it makes nothing twice.
 */
export function callError(error: unknown, { url, values }: RequestFacts, is_safe: boolean): unknown {
  if (error instanceof ApiError) {
    const { status: statusCode, type, message, code, param, details, request_id } = error;
    const responseHeaders = Object.fromEntries(error.headers);
    const { task_id } = error;
    const body = {
      error: { type, message, code: code ?? null, param: param ?? null, details, request_id },
      ...(task_id !== undefined && { task_id }),
    };
    return new APICallError({
      message,
      url,
      requestBodyValues: values,
      statusCode,
      responseHeaders,
      responseBody: JSON.stringify(body),
      data: body,
      cause: error,
      isRetryable:
        isRepeatable(statusCode, responseHeaders) &&
        (is_safe || (!error.follows_lost_answer && error.task_id === undefined)),
    });
  }
  if (error instanceof TaskFailedError) {
    const { task, type, message } = error;
    return new APICallError({
      message,
      url,
      requestBodyValues: values,
      statusCode: failure_statuses[type] ?? 502,
      responseBody: JSON.stringify(task),
      data: { error: task.error, task },
      cause: error,
      isRetryable: false, // each failed run counts toward the limit of the account
    });
  }
  if (error instanceof ConnectionError) {
    const { message, task_id } = error;
    const data = task_id === undefined ? undefined : { task_id };
    return new APICallError({ message, url, requestBodyValues: values, data, cause: error, isRetryable: is_safe });
  }
  if (error instanceof MedleyError) {
    return new APICallError({
      message: error.message,
      url,
      requestBodyValues: values,
      cause: error,
      isRetryable: false,
    });
  }
  return error;
}

/** Failures before a request was sent, which can have cost nothing. */
const unsent_codes: readonly unknown[] = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'ConnectionRefused',
];

/** Returns an error of a call of chat with `isRetryable` by the rules of the service. */
export function chatError(error: unknown, values: unknown): unknown {
  if (!APICallError.isInstance(error)) return error;
  const { message, url, statusCode, responseHeaders, responseBody, data, cause } = error;
  const isRetryable = statusCode === undefined ? isUnsent(cause) : isRepeatable(statusCode, responseHeaders ?? {});
  return new APICallError({
    message,
    url,
    requestBodyValues: values,
    cause,
    data,
    isRetryable,
    ...(statusCode !== undefined && { statusCode }),
    ...(responseHeaders && { responseHeaders }),
    ...(responseBody !== undefined && { responseBody }),
  });
}

function isUnsent(cause: unknown): boolean {
  for (let error = cause; error instanceof Error; error = error.cause)
    if ('code' in error && unsent_codes.includes(error.code)) return true;
  return false;
}
