import { fieldsOf, listOf, parse, textOf, type Fields } from './json.ts';

/** One mistake of a request that has several. */
export type FieldMistake = { field: string; rule: string; message: string };

/** Everything that this client throws by itself. An abort rejects with the reason of the signal instead. */
export class MedleyError extends Error {
  override name = 'MedleyError';
  /** The task that was created before the error, if there is one. It goes on; `tasks.wait(task_id)` waits for it again. */
  task_id: string | undefined;
}

/** No complete answer came: the connection failed, or was cut. */
export class ConnectionError extends MedleyError {
  override name = 'ConnectionError';
}

/** No complete answer came within `timeout_ms`. */
export class RequestTimeoutError extends ConnectionError {
  override name = 'RequestTimeoutError';
}

/** The signature of a webhook is missing, wrong or too old. Answer 401. */
export class WebhookError extends MedleyError {
  override name = 'WebhookError';
}

export type ErrorAnswer = {
  status: number;
  type: string;
  message: string;
  code: string | undefined;
  param: string | undefined;
  details: FieldMistake[];
  request_id: string | undefined;
  headers: Headers;
};

/** An answer with a status from 400. Branch on the class, or on `status` and `type`; the message may change. */
export class ApiError extends MedleyError {
  override name = 'ApiError';
  readonly status: number;
  readonly type: string;
  /** More specific than the type, such as `conflict` or `model_not_found`. */
  readonly code: string | undefined;
  /** The field or parameter at fault. */
  readonly param: string | undefined;
  /** All mistakes, if there are several. */
  readonly details: FieldMistake[];
  /** Name it when you ask the operator. */
  readonly request_id: string | undefined;
  readonly headers: Headers;
  /** An earlier attempt of the same request was sent and its answer lost. */
  follows_lost_answer = false;

  constructor(answer: ErrorAnswer) {
    super(answer.message);
    this.status = answer.status;
    this.type = answer.type;
    this.code = answer.code;
    this.param = answer.param;
    this.details = answer.details;
    this.request_id = answer.request_id;
    this.headers = answer.headers;
  }
}

/** 400, 404 of a method, 409, 413, 415, 422: the request has to change. */
export class InvalidRequestError extends ApiError {
  override name = 'InvalidRequestError';
}

/** 401: the API key is missing, malformed or deleted. */
export class AuthenticationError extends ApiError {
  override name = 'AuthenticationError';
}

/** 402: the available balance is lower than the hold. */
export class InsufficientBalanceError extends ApiError {
  override name = 'InsufficientBalanceError';
}

/** 403: the key has reached its monthly limit, or may not do this. */
export class PermissionDeniedError extends ApiError {
  override name = 'PermissionDeniedError';
}

/** 404: no such model, task or file. */
export class NotFoundError extends ApiError {
  override name = 'NotFoundError';
}

/** 429 `rate_limit`: too many requests for this key, still after the retries. */
export class RateLimitError extends ApiError {
  override name = 'RateLimitError';
}

/** 429 `rate_limit_error`: the account is paused after too many failed generations. Never repeated. */
export class FailedGenerationsError extends ApiError {
  override name = 'FailedGenerationsError';
}

/** 500: a fault of the service. */
export class InternalError extends ApiError {
  override name = 'InternalError';
}

/** 502 or 503: the provider of the model, or a part of the service, is not available. */
export class UpstreamError extends ApiError {
  override name = 'UpstreamError';
}

/** 504: the model did not answer in time. */
export class UpstreamTimeoutError extends ApiError {
  override name = 'UpstreamTimeoutError';
}

/** The class of each `error.type` of the service. */
export const error_classes = {
  invalid_request: InvalidRequestError,
  authentication_error: AuthenticationError,
  insufficient_balance: InsufficientBalanceError,
  permission_error: PermissionDeniedError,
  not_found: NotFoundError,
  rate_limit: RateLimitError,
  rate_limit_error: FailedGenerationsError,
  internal_error: InternalError,
  upstream_error: UpstreamError,
  timeout: UpstreamTimeoutError,
} as const satisfies Record<string, typeof ApiError>;

/** The status of each type, for the error that ends a stream: that comes behind a 200. */
const statuses: Readonly<Record<keyof typeof error_classes, number>> = {
  invalid_request: 400,
  authentication_error: 401,
  insufficient_balance: 402,
  permission_error: 403,
  not_found: 404,
  rate_limit: 429,
  rate_limit_error: 429,
  internal_error: 500,
  upstream_error: 502,
  timeout: 504,
};

/** Tells an error of the service from one of a proxy before it. */
export function isErrorType(type: string): type is keyof typeof error_classes {
  return Object.hasOwn(error_classes, type);
}

/** Returns the error of an answer. `text` is its body, whatever it is: a proxy may have written it. */
export function errorOfAnswer(status: number, headers: Headers, text: string): ApiError {
  return errorOf(fieldsOf(fieldsOf(parse(text))['error']), status, headers);
}

/** Returns the error that a stream ends with. Its status is the one that its type has elsewhere. */
export function errorOfEvent(error: unknown, headers: Headers): ApiError {
  const fields = typeof error === 'string' ? { message: error } : fieldsOf(error);
  const type = textOf(fields['type']) ?? '';
  return errorOf(fields, isErrorType(type) ? statuses[type] : 502, headers);
}

function errorOf(error: Fields, status: number, headers: Headers): ApiError {
  const type = textOf(error['type']) ?? 'unknown';
  const answer: ErrorAnswer = {
    status,
    type,
    message: textOf(error['message']) ?? `The service answered ${status} without an error of its own.`,
    code: textOf(error['code']),
    param: textOf(error['param']),
    details: listOf(error['details']).flatMap(mistakeOf),
    request_id: textOf(error['request_id']) ?? headers.get('x-request-id') ?? undefined,
    headers,
  };
  const Class = isErrorType(type) ? error_classes[type] : ApiError;
  return new Class(answer);
}

function mistakeOf(value: unknown): FieldMistake[] {
  const { field, rule, message } = fieldsOf(value);
  if (typeof field !== 'string' || typeof message !== 'string') return [];
  return [{ field, rule: textOf(rule) ?? '', message }];
}
