import { below } from './below.ts';
import { askForProof, type ProofKind } from './proof.ts';
import { isRecord } from './record.ts';

export { isRecord };

/** An error of the service: a message for people, with the id by which its log knows the request. */
export class Failure extends Error {
  override name = 'Failure';
  readonly status: number;
  readonly type: string;
  readonly param: string | undefined;
  readonly code: string | undefined;
  readonly request_id: string | undefined;

  constructor(
    status: number,
    body: { message: string; type?: string; param?: string; code?: string; request_id?: string },
  ) {
    super(body.message);
    this.status = status;
    this.type = body.type ?? 'unknown';
    this.param = body.param;
    this.code = body.code;
    this.request_id = body.request_id;
  }
}

type Options = { signal?: AbortSignal };

/** Asks who is there once more where the service wants to know, and goes on. */
async function send<T>(method: string, path: string, body: unknown, options: Options): Promise<T> {
  for (let proofs = 0; ; proofs += 1) {
    try {
      return await sendOnce<T>(method, path, body, options);
    } catch (error) {
      const kind = error instanceof Failure ? proof_kinds.get(error.code ?? '') : undefined;
      if (kind === undefined || proofs === proof_kinds.size || !(await askForProof(kind))) throw error;
    }
  }
}

/** Proofs that would help, by the code of a refusal. */
const proof_kinds: ReadonlyMap<string, ProofKind> = new Map([
  ['proof_required', 'any'],
  ['passkey_required', 'passkey'],
]);

async function sendOnce<T>(method: string, path: string, body: unknown, { signal }: Options): Promise<T> {
  const init: RequestInit = { method, credentials: 'same-origin' };
  if (signal) init.signal = signal;
  if (body instanceof FormData) init.body = body;
  else if (body !== undefined) {
    init.headers = { 'content-type': 'application/json' };
    init.body = JSON.stringify(body);
  }
  const response = await fetch(below(path), init).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Failure(0, { message: 'The service cannot be reached. It may be restarting.' });
  });
  const text = await response.text();
  const json = parsed(text);
  if (!response.ok) throw new Failure(response.status, messageIn(json, response.status));
  return json as T; // the types of both sides come from one file of the server
}

/** Answers of the dashboard have `error: {…}`, those of the login library `message` at the top. */
function messageIn(json: unknown, status: number): { message: string } {
  if (isRecord(json)) {
    const error = isRecord(json['error']) ? json['error'] : json;
    if (typeof error['message'] === 'string' && error['message'] !== '') return { ...error, message: error['message'] };
  }
  if (status === 429) return { message: 'Too many attempts. Wait a minute, then try again.' };
  return { message: `The service answered ${status}.` };
}

function parsed(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const api = {
  get: <T>(path: string, options: Options = {}) => send<T>('GET', path, undefined, options),
  post: <T>(path: string, body: unknown = {}, options: Options = {}) => send<T>('POST', path, body, options),
  put: <T>(path: string, body: unknown, options: Options = {}) => send<T>('PUT', path, body, options),
  patch: <T>(path: string, body: unknown, options: Options = {}) => send<T>('PATCH', path, body, options),
  delete: <T>(path: string, options: Options = {}) => send<T>('DELETE', path, undefined, options),
};

/** A query string without what is not set. */
export function queryOf(values: Record<string, string | number | boolean | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values))
    if (value !== undefined && value !== '') query.set(name, String(value));
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}
