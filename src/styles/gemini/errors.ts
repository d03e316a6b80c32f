import { error_members, objectSchema, type ApiError, type ErrorFormat } from '../../errors.ts';
import type { StreamError } from '../codec.ts';

/** Google's word for each HTTP status (google.rpc.Code). */
const words: ReadonlyMap<number, string> = new Map([
  [400, 'INVALID_ARGUMENT'],
  [401, 'UNAUTHENTICATED'],
  [402, 'FAILED_PRECONDITION'],
  [403, 'PERMISSION_DENIED'],
  [404, 'NOT_FOUND'],
  [405, 'UNIMPLEMENTED'],
  [409, 'ABORTED'],
  [413, 'INVALID_ARGUMENT'],
  [415, 'INVALID_ARGUMENT'],
  [422, 'INVALID_ARGUMENT'],
  [429, 'RESOURCE_EXHAUSTED'],
  [500, 'INTERNAL'],
  [502, 'UNAVAILABLE'],
  [503, 'UNAVAILABLE'],
  [504, 'DEADLINE_EXCEEDED'],
]);

function wordOf(status: number): string {
  return words.get(status) ?? 'UNKNOWN';
}

const rpc = 'type.googleapis.com/google.rpc.';
const text = { type: 'string' };

/** Errors as the SDKs of Gemini read them. */
export const gemini_errors: ErrorFormat = {
  name: 'GeminiError',
  schema: {
    ...objectSchema({
      error: objectSchema({
        code: { type: 'integer', description: 'The HTTP status.' },
        message: error_members.message,
        status: { enum: [...new Set(words.values()), 'UNKNOWN'] },
        details: {
          type: 'array',
          items: { ...objectSchema({ '@type': text }), additionalProperties: true },
          description:
            'An ErrorInfo, whose metadata has the type and the request id; where they apply, a BadRequest and a RetryInfo.',
        },
      }),
    }),
    description: "An error in Gemini's style.",
  },
  render: (error, request_id) => ({
    error: {
      code: error.status,
      message: error.message,
      status: wordOf(error.status),
      details: detailsOf(error, request_id),
    },
  }),
};

/** Clients wait as long as a RetryInfo says, and look into an ErrorInfo for the reason. */
function detailsOf({ kind, type, message, extras }: ApiError, request_id: string): object[] {
  const { code, param, details, headers } = extras;
  const reason = kind === 'unauthenticated' ? 'API_KEY_INVALID' : (code ?? type).toUpperCase();
  const metadata = { type, request_id, ...(code !== undefined && { code }), ...(param !== undefined && { param }) };
  const violations = details?.map((each) => ({ field: each.field, description: each.message })) ?? [];
  if (violations.length === 0 && param !== undefined) violations.push({ field: param, description: message });
  const wait_s = headers?.['retry-after'];
  return [
    { '@type': `${rpc}ErrorInfo`, reason, domain: 'medley', metadata },
    ...(violations.length > 0 ? [{ '@type': `${rpc}BadRequest`, fieldViolations: violations }] : []),
    ...(wait_s === undefined ? [] : [{ '@type': `${rpc}RetryInfo`, retryDelay: `${wait_s}s` }]),
  ];
}

const status_by_type: ReadonlyMap<string, number> = new Map([
  ['timeout', 504],
  ['rate_limit', 429],
  ['internal_error', 500],
  ['invalid_request', 400],
]);

/** The last event of a stream that went wrong; the SDKs throw it. */
export function errorEvent({ type, message, request_id }: StreamError): Buffer {
  const code = status_by_type.get(type) ?? 502;
  const info = {
    '@type': `${rpc}ErrorInfo`,
    reason: type.toUpperCase(),
    domain: 'medley',
    metadata: { type, request_id },
  };
  return frame({ error: { code, message, status: wordOf(code), details: [info] } });
}

/** An event as Google's servers write it. */
export function frame(chunk: object): Buffer {
  return Buffer.from(`data: ${JSON.stringify(chunk)}\r\n\r\n`);
}
