import type { FieldError } from './json-schema/sentences.ts';

/**
 * Every error that a caller can see, defined once: HTTP status and `type` of specification 7.2 and
 * DECISIONS (Errors). The three formats of 7.1 render them at the end of this file.
 */
const kinds = {
  invalid_request: { status: 400, type: 'invalid_request' },
  invalid_input: { status: 422, type: 'invalid_request' },
  unauthenticated: { status: 401, type: 'authentication_error' },
  insufficient_balance: { status: 402, type: 'insufficient_balance' },
  key_limit: { status: 403, type: 'permission_error' },
  account_blocked: { status: 403, type: 'permission_error' },
  forbidden: { status: 403, type: 'permission_error' },
  not_found: { status: 404, type: 'not_found' },
  method_not_allowed: { status: 405, type: 'invalid_request' },
  conflict: { status: 409, type: 'invalid_request' },
  too_large: { status: 413, type: 'invalid_request' },
  unsupported_media_type: { status: 415, type: 'invalid_request' },
  rate_limit: { status: 429, type: 'rate_limit' },
  failures_pause: { status: 429, type: 'rate_limit_error' },
  internal_error: { status: 500, type: 'internal_error' },
  upstream_error: { status: 502, type: 'upstream_error' },
  unavailable: { status: 503, type: 'upstream_error' },
  timeout: { status: 504, type: 'timeout' },
} as const;

export type ErrorKind = keyof typeof kinds;

export type { FieldError };

export type ErrorExtras = {
  /** Machine-readable refinement, inside `error`. */
  code?: string;
  /** The field or parameter at fault, inside `error`. */
  param?: string;
  /** All mistakes when there are several; `message` tells the first. */
  details?: FieldError[];
  /** For SDKs of the messages style, which branch on `error.details.error_code`; in all formats. */
  sdk_details?: { error_code: string; unsupported?: readonly string[] };
  /** Extra response headers, for example Retry-After. Lower-case names. */
  headers?: Record<string, string>;
};

/** Thrown anywhere below the pipeline; becomes the answer. `message` is for the caller's eyes. */
export class ApiError extends Error {
  override name = 'ApiError';
  readonly kind: ErrorKind;
  readonly status: number;
  readonly type: string;
  readonly extras: ErrorExtras;

  constructor(kind: ErrorKind, message: string, extras: ErrorExtras = {}) {
    super(message);
    this.kind = kind;
    this.status = kinds[kind].status;
    this.type = kinds[kind].type;
    this.extras = extras;
  }
}

/** The wire formats of specification 7.1. */
export type ErrorFormat = 'service' | 'completions' | 'messages';

/**
 * The JSON body of `error` in `format`. The top level has exactly the keys that 7.1 shows, and
 * `request_id` in messages style; everything else goes inside `error`.
 */
export function renderError(error: ApiError, format: ErrorFormat, request_id: string): object {
  const { code, param, details, sdk_details } = error.extras;
  const several = details !== undefined && details.length > 1 ? { details } : sdk_details && { details: sdk_details };
  if (format === 'completions') {
    const { message, type } = error;
    return { error: { message, type, param: param ?? null, code: code ?? null, ...several, request_id } };
  }
  const inner = {
    type: error.type,
    message: error.message,
    ...(code !== undefined && { code }),
    ...(param !== undefined && { param }),
    ...several,
  };
  return format === 'messages' ? { type: 'error', error: inner, request_id } : { error: { ...inner, request_id } };
}
