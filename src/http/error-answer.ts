import { isUnavailable, isUnstorable } from '../db/database.ts';
import { ApiError, service_errors, type ErrorFormat, type ErrorKind } from '../errors.ts';
import { SpoolError } from '../files/spool.ts';
import { StorageUnavailable } from '../storage/storage.ts';
import { completions_errors } from '../styles/completions/errors.ts';
import { gemini_errors } from '../styles/gemini/errors.ts';
import { styles } from '../styles/index.ts';
import { belowVersion } from './routes.ts';

/** Below them are Gemini's paths, known or not. */
const beta_paths = ['/v1beta', '/upload/v1beta', '/upload/v1'];

/** Calls other than chat that the SDKs of chat completions have. */
const other_paths = [
  '/v1/embeddings',
  '/v1/rerank',
  '/v1/moderations',
  '/v1/images',
  '/v1/audio',
  '/v1/videos',
  '/v1/batches',
];

const formats: readonly { path: string; format: ErrorFormat }[] = [
  ...styles.flatMap(({ caller }) => (caller ? [{ path: caller.endpoint.path, format: caller.errors }] : [])),
  ...beta_paths.map((path) => ({ path, format: gemini_errors })),
  ...other_paths.map((path) => ({ path, format: completions_errors })),
];

/** The error format of a path that may be anything (specification 7.1). */
export function formatOfPath(path: string): ErrorFormat {
  const meant = path === '/v2/rerank' ? '/v1/rerank' : belowVersion(path);
  const under = (prefix: string) => meant === prefix || meant.startsWith(`${prefix}/`);
  return formats.find((each) => under(each.path))?.format ?? service_errors;
}

/**
 * The official SDKs repeat 403 never, but 429 always and 402 in some versions; this header stops them
 * where a repetition within seconds fails the same way. The failures pause can last a day, and an
 * SDK would sleep as long as Retry-After says.
 */
const not_worth_a_retry = new Set<ErrorKind>([
  'insufficient_balance',
  'key_limit',
  'account_blocked',
  'failures_pause',
]);

/** An error as it goes over the wire. */
export type ErrorAnswer = { status: number; headers: Record<string, string>; body: string };

export function errorAnswer(error: ApiError, format: ErrorFormat, request_id: string): ErrorAnswer {
  return {
    status: error.status,
    headers: {
      ...error.extras.headers,
      ...(not_worth_a_retry.has(error.kind) && { 'x-should-retry': 'false' }),
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
    },
    body: JSON.stringify(format.render(error, request_id)),
  };
}

/** Returns the caller's error. Undefined for a surprise: it becomes a 500 whose details are only in the log. */
export function expectedError(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error;
  if (isUnavailable(error)) return databaseAway();
  if (error instanceof SpoolError) return cannotStore();
  if (error instanceof StorageUnavailable) return filesAway();
  if (isUnstorable(error)) return new ApiError('invalid_request', 'The input must not contain NUL (U+0000).');
  return undefined;
}

function databaseAway(): ApiError {
  const headers = { 'retry-after': '1' };
  return new ApiError('unavailable', 'The service cannot reach its database at the moment. Try again shortly.', {
    headers,
  });
}

/** Disks take longer than databases to come back: somebody must free space. */
function cannotStore(): ApiError {
  const headers = { 'retry-after': '10' };
  return new ApiError('unavailable', 'The service cannot store files at the moment. Try again later.', { headers });
}

function filesAway(): ApiError {
  const headers = { 'retry-after': '5' };
  return new ApiError('unavailable', 'The service cannot reach its files at the moment. Try again shortly.', {
    headers,
  });
}

export function internalError(): ApiError {
  return new ApiError(
    'internal_error',
    'An internal error occurred. Report it with the request id, which is in the log.',
  );
}
