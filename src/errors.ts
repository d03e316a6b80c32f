import type { FieldError } from './json-schema/sentences.ts';

/**
 * Every error that a caller can see, defined once: HTTP status and `type` of specification 7.2, and those that
 * docs/spec-coverage.md adds ("Decisions: errors"). The `code` is the word that clients of the official APIs look for
 * (decision 83). A format of 7.1 renders them: the service's own at the end of this file, others beside their styles.
 */
const kinds = {
  invalid_request: { status: 400, type: 'invalid_request' },
  invalid_input: { status: 422, type: 'invalid_request' },
  unauthenticated: { status: 401, type: 'authentication_error', code: 'invalid_api_key' },
  insufficient_balance: { status: 402, type: 'insufficient_balance', code: 'insufficient_quota' },
  key_limit: { status: 403, type: 'permission_error' },
  account_blocked: { status: 403, type: 'permission_error' },
  forbidden: { status: 403, type: 'permission_error' },
  not_found: { status: 404, type: 'not_found' },
  method_not_allowed: { status: 405, type: 'invalid_request' },
  upgrade_refused: { status: 426, type: 'invalid_request' },
  conflict: { status: 409, type: 'invalid_request' },
  too_large: { status: 413, type: 'invalid_request', code: 'request_too_large' },
  unsupported_media_type: { status: 415, type: 'invalid_request' },
  rate_limit: { status: 429, type: 'rate_limit', code: 'rate_limit_exceeded' },
  failures_pause: { status: 429, type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  internal_error: { status: 500, type: 'internal_error' },
  upstream_error: { status: 502, type: 'upstream_error' },
  unavailable: { status: 503, type: 'upstream_error' },
  timeout: { status: 504, type: 'timeout' },
} as const satisfies { [kind: string]: { status: number; type: string; code?: string } };

export type ErrorKind = keyof typeof kinds;

export type { FieldError };

/** Reasons for which a caller's request is refused before any work, each with a next step of its own. */
export const refusal_reasons = [
  'insufficient_balance',
  'monthly_limit',
  'budget_reached',
  'model_not_allowed',
  'scope_missing',
  'address_not_allowed',
  'limited_to_projects',
  'account_blocked',
  'rate_limit',
  'concurrency_limit',
  'failures_pause',
] as const;

export type RefusalReason = (typeof refusal_reasons)[number];

/** A refusal as it is counted for its account. `key_id`: where the request came without one, from the playground. */
export type Refusal = { reason: RefusalReason; key_id?: string; budget_id?: string; model?: string };

export type ErrorExtras = {
  /** Machine-readable refinement, inside `error`. */
  code?: string;
  /** The field or parameter at fault, inside `error`. */
  param?: string;
  /** All mistakes when there are several; `message` tells the first. */
  details?: FieldError[];
  /** For SDKs of the messages style, which branch on `error.details.error_code`; in all formats. */
  sdk_details?: { error_code: string; unsupported?: readonly string[] };
  /** The message as a record may hold it, if `message` has an upstream's words: these may quote what the caller sent. */
  record_message?: string;
  /** Extra response headers, for example Retry-After. Lower-case names. */
  headers?: Record<string, string>;
  /** Counted for the account (`src/money/refusals.ts`); no answer has it. */
  refusal?: Refusal;
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
    const { status, type, code }: { status: number; type: string; code?: string } = kinds[kind];
    this.status = status;
    this.type = type;
    this.extras = code === undefined ? extras : { code, ...extras };
  }
}

/** Returns the error 400 for a field or a parameter: `message` says what it must be. */
export function invalidField(name: string, message: string): ApiError {
  return new ApiError('invalid_request', message, { param: name.slice(0, 60) });
}

/** A wire format of errors (specification 7.1). */
export type ErrorFormat = {
  /** The name in the reference. */
  readonly name: string;
  /** JSON Schema of the body. */
  readonly schema: object;
  /** A header that has the request id beside `x-request-id`, where the SDKs of the format look for it. */
  readonly request_id_header?: string;
  /** The top level has exactly the keys that 7.1 shows; everything else goes inside `error`. */
  render(error: ApiError, request_id: string): object;
};

/** Returns the extra members of an error: all mistakes if there are several, or the details that SDKs branch on. */
export function moreOf({ extras: { details, sdk_details } }: ApiError): object {
  if (details !== undefined && details.length > 1) return { details };
  return sdk_details ? { details: sdk_details } : {};
}

/** Returns the members of `error`, in the order of the service's own format. */
export function membersOf(error: ApiError): object {
  const { code, param } = error.extras;
  return {
    type: error.type,
    message: error.message,
    ...(code !== undefined && { code }),
    ...(param !== undefined && { param }),
    ...moreOf(error),
  };
}

/** JSON Schemas of what all formats have, written out: commands throw errors too, and typebox takes 0.1 s to load. */
export const error_members = {
  type: {
    enum: [
      'invalid_request',
      'authentication_error',
      'insufficient_balance',
      'permission_error',
      'not_found',
      'rate_limit',
      'rate_limit_error',
      'internal_error',
      'upstream_error',
      'timeout',
    ],
    description: 'Branch on this and on the HTTP status.',
  },
  message: { type: 'string', description: 'For people; may change.' },
  code: {
    type: 'string',
    description:
      'More specific than the type, in the words of the official APIs where they have one: invalid_api_key, insufficient_quota, rate_limit_exceeded, model_not_found, context_length_exceeded, content_filter, request_too_large.',
  },
  param: { type: 'string', description: 'The field or parameter at fault.' },
  request_id: { type: 'string', description: 'The same as the header x-request-id.' },
};

/** Returns the JSON Schema of an object; those of `optional` may be absent. */
export function objectSchema(properties: Record<string, object>, optional: readonly string[] = []) {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', required, properties };
}

const text = { type: 'string' };

/** The service's own format. */
export const service_errors: ErrorFormat = {
  name: 'Error',
  schema: {
    ...objectSchema({
      error: objectSchema(
        {
          type: error_members.type,
          message: error_members.message,
          code: error_members.code,
          param: error_members.param,
          details: {
            type: 'array',
            items: objectSchema({ field: text, rule: text, message: text }),
            description: 'All mistakes, if there are several.',
          },
          request_id: error_members.request_id,
        },
        ['code', 'param', 'details'],
      ),
    }),
    description: 'An error of the service.',
  },
  render: (error, request_id) => ({ error: { ...membersOf(error), request_id } }),
};
