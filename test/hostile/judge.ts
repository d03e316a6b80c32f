import { listOperations, type HostileRequest, type World } from './requests.ts';
import type { Reply } from './wire.ts';
import { isRecord } from './text.ts';

export type Judge = {
  /** Returns the faults of an answer to a hostile request; empty if there are none. */
  problemsOf(request: HostileRequest, reply: Reply): string[];
  /** Method and path of the endpoint that a request is for; `none` if there is none. */
  endpointOf(request: HostileRequest): string;
};

/** Texts that must be nowhere in an answer: secrets of the service, what belongs to others, traces of its inside. */
export type Forbidden = readonly (string | RegExp)[];

const traces: Forbidden = [
  /\bat (?:async )?[\w.<>]+ \(/,
  /(?:src|node_modules)\/[\w/.-]+\.(?:ts|js)/,
  /\b(?:SQLSTATE|plpgsql|pg_catalog|ECONNREFUSED)\b|syntax error at or near|violates .{0,40}constraint/,
];

/** Judges answers by the reference of `world`, and by what they may not show. */
export function makeJudge(world: World, secrets: readonly string[]): Judge {
  const operations = listOperations(world.document).map(({ method, path, docs }) => ({
    method,
    path,
    regex: new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, anyId(path))}$`, 's'),
    statuses: Object.keys(isRecord(docs['responses']) ? docs['responses'] : {}).map(Number),
  }));
  const operationsAt = (path: string) => {
    const exact = operations.filter((one) => one.path === path); // goes before a path with parameters
    return exact.length > 0 ? exact : operations.filter(({ regex }) => regex.test(path));
  };
  const forbidden: Forbidden = [...secrets, ...traces];
  const endpoints = world.endpoints.map(({ method, path }) => ({
    name: `${method} ${path}`,
    method,
    is_exact: !path.includes('{'),
    regex: new RegExp(
      `^${path.replaceAll('.', '\\.').replaceAll(/\{(\+?)\w+\}/g, (_, rest) => (rest === '' ? '[^/]+' : '.+'))}$`,
      's',
    ),
  }));
  const endpointOf = (request: HostileRequest) => {
    const path = pathOf(request.target);
    const fits = endpoints.filter(({ method, regex }) => method === request.method && regex.test(path));
    return (fits.find(({ is_exact }) => is_exact) ?? fits[0])?.name ?? 'none';
  };
  const problemsOf: Judge['problemsOf'] = (request, reply) => {
    const path = decoded(pathOf(request.target));
    const routed = decoded(pathOf(request.target).replaceAll(/%2f/gi, '%252F')); // separates no parts
    const at_path = operationsAt(routed);
    const isItsMethod = ({ method }: { method: string }) =>
      method === request.method || alsoGet(method, request.method);
    // Where no operation is, one is meant, if a key is sent: both answers are right.
    const documented =
      at_path.length > 0
        ? at_path.find(isItsMethod)?.statuses
        : operationsAt(belowVersion(routed)).find(isItsMethod)?.statuses.concat(unknown_path_statuses);
    return [
      ...statusProblems(request, reply, documented, at_path.length > 0),
      ...headerProblems(path, reply),
      ...(reply.status >= 400 ? errorProblems(request, at_path.length > 0 ? routed : path, reply) : []),
      ...secretProblems(reply, forbidden),
      ...keyProblems(world, request, path, reply),
    ];
  };
  return { problemsOf, endpointOf };
}

/** The ids of models and the keys of files take slashes. */
function anyId(path: string): string {
  return /^\/v1(beta)?\/models\//.test(path) || path.startsWith('/files/') ? '.+' : '[^/]+';
}

function alsoGet(documented: string, sent: string): boolean {
  return documented === 'GET' && sent === 'HEAD';
}

function pathOf(target: string): string {
  return target.replace(/^https?:\/\/[^/?#]*/i, '').split('?')[0] ?? '';
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** 200: pages that are not in the reference. */
const unknown_path_statuses = [200, 400, 401, 404, 405, 429];

/** A path that exists for other methods answers 405; one that does not, 404; both ask for a key below /v1. */
function statusProblems(
  request: HostileRequest,
  reply: Reply,
  documented: readonly number[] | undefined,
  known_path: boolean,
): string[] {
  const { status } = reply;
  // Answers 404, and is not in the reference; a body that it does not ask for is read like those of others.
  const is_stored =
    /^[^?]*\/v1\/responses\/[^/]/.test(request.target) ||
    (request.method === 'POST' && /^[^?]*\/v1\/models\/[^/]/.test(request.target));
  const allowed_statuses = is_stored ? [400, 401, 404, 405, 413, 415, 422, 429] : [400, 401, 405, 429];
  if (isOfDashboard(request.target) && (status < 500 || status === 502 || status === 504)) return []; // pages that are not in the reference
  const unknown = known_path || is_stored ? allowed_statuses : unknown_path_statuses;
  const allowed = documented ?? unknown;
  if (status >= 500 && !(status === 502 || status === 504)) return [`status ${status}`];
  return allowed.includes(status) ? [] : [`status ${status} is none of ${allowed.join(' ')} for ${request.method}`];
}

function isOfDashboard(target: string): boolean {
  return /^\/(?:auth|dash|stripe|events)\//.test(target);
}

function headerProblems(path: string, reply: Reply): string[] {
  const problemsOf: string[] = [];
  if (!/^req_[0-9a-z]{26}$/.test(reply.headers.get('x-request-id') ?? '')) problemsOf.push('no request id of ours');
  if (reply.headers.get('x-content-type-options') !== 'nosniff') problemsOf.push('no nosniff');
  if (/^\/v1(\/|$)/.test(path) && reply.status < 300 && !isUncached(reply)) {
    problemsOf.push('may be cached');
  }
  if (reply.headers.has('set-cookie') && !path.startsWith('/auth/')) problemsOf.push('sets a cookie');
  if (reply.status === 429 && !/^\d+$/.test(reply.headers.get('retry-after') ?? ''))
    problemsOf.push('429 without time');
  return problemsOf;
}

/** Nobody caches answers to POST; `no-cache` asks proxies to pass streams on at once. */
function isUncached({ headers }: Reply): boolean {
  const is_stream = headers.get('content-type')?.startsWith('text/event-stream') === true;
  return headers.get('cache-control') === (is_stream ? 'no-cache, no-transform' : 'no-store');
}

/** The formats of specification 7.1. */
type ErrorFormat = 'service' | 'completions' | 'messages' | 'gemini';

const formats: Record<ErrorFormat, { outer: string; inner: readonly string[] }> = {
  service: { outer: 'error', inner: ['message', 'request_id', 'type'] },
  completions: { outer: 'error', inner: ['code', 'message', 'param', 'request_id', 'type'] },
  messages: { outer: 'error request_id type', inner: ['message', 'type'] },
  gemini: { outer: 'error', inner: ['code', 'message', 'status', 'details'] },
};

const optional_inner = new Set(['code', 'param', 'details']);

/** The path that is meant where a base URL lacks /v1, or has it twice. */
function belowVersion(path: string): string {
  return `/v1${path.replace(/^(?:\/v1(?=\/)){0,2}/, '')}`;
}

function formatOf(sent: string, method: string): ErrorFormat {
  if (
    /^(?:\/v1)?\/(?:v1beta|upload\/v1|upload\/v1beta)(\/|$)/.test(sent) ||
    (method === 'POST' && /^(?:\/v1){0,2}\/models\/./s.test(sent))
  )
    return 'gemini';
  const path = belowVersion(sent);
  if (/^(?:\/v1){0,2}\/v2\/rerank$/.test(sent)) return 'completions';
  if (
    /^\/v1\/(?:chat\/completions|embeddings|rerank|moderations|responses|images|audio|videos|batches)(\/|$)/.test(path)
  )
    return 'completions';
  return /^\/v1\/messages(\/|$)/.test(path) ? 'messages' : 'service';
}

function errorProblems(request: HostileRequest, path: string, reply: Reply): string[] {
  if (request.method === 'HEAD') return reply.body.length === 0 ? [] : ['HEAD with a body'];
  if (!reply.headers.get('content-type')?.startsWith('application/json')) return ['an error that is no JSON'];
  let body: unknown;
  try {
    body = JSON.parse(reply.body.toString());
  } catch {
    return ['an error that cannot be parsed'];
  }
  if (path.startsWith('/auth/') && isRecord(body) && typeof body['message'] === 'string') return []; // the library's own
  if (/^\/mcp\/?$/.test(path) && isProtocolError(body)) return [];
  if (path.startsWith('/oauth/') && isOAuthError(body)) return [];
  // Of a head that is too large nobody knows the path: it comes in the format of the request before it.
  if (reply.body.includes('The headers are larger')) return [];
  const format = formatOf(path, request.method);
  const wrong = formatProblem(body, format);
  return wrong === undefined ? [] : [`not in the format ${format}: ${wrong}`];
}

/** Errors of RFC 6749, section 5.2. */
function isOAuthError(body: unknown): boolean {
  return isRecord(body) && typeof body['error'] === 'string' && typeof body['error_description'] === 'string';
}

/** Errors of JSON-RPC 2.0, which tools of agents are called by: what comes before it has the service's format. */
function isProtocolError(body: unknown): boolean {
  if (!isRecord(body) || body['jsonrpc'] !== '2.0' || !isRecord(body['error'])) return false;
  const { code, message } = body['error'];
  return typeof code === 'number' && typeof message === 'string';
}

/** Returns the first fault of an error's format by specification 7.1; undefined if there is none. */
export function formatProblem(body: unknown, format: ErrorFormat): string | undefined {
  if (!isRecord(body)) return 'no object';
  const { outer, inner } = formats[format];
  if (Object.keys(body).toSorted().join(' ') !== outer) return `members ${Object.keys(body).join(' ')}`;
  const { error } = body;
  if (!isRecord(error)) return 'error is no object';
  const missing = inner.filter((name) => !(name in error));
  const surplus = Object.keys(error).filter((name) => !inner.includes(name) && !optional_inner.has(name));
  if (missing.length > 0 || surplus.length > 0) return `missing ${missing.join()}, surplus ${surplus.join()}`;
  if (format === 'messages' && body['type'] !== 'error') return 'type is not error';
  const texts = [format === 'gemini' ? error['status'] : error['type'], error['message']];
  return texts.every((text) => typeof text === 'string' && text !== '') ? undefined : 'type or message is no text';
}

function secretProblems(reply: Reply, forbidden: Forbidden): string[] {
  const heads = [...reply.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
  const text = `${heads}\n${reply.body.toString('latin1')}`;
  return forbidden
    .filter((secret) => (typeof secret === 'string' ? text.includes(secret) : secret.test(text)))
    .map((secret) => `shows what it must not: ${String(secret).slice(0, 60)}`);
}

/** Without a key that works nothing below /v1 is ever granted. */
function keyProblems(world: World, request: HostileRequest, path: string, reply: Reply): string[] {
  if (!/^\/v1(\/|$)/.test(path) || reply.status >= 400) return [];
  const sent = request.headers
    .filter(([name]) => /^(authorization|x-api-key|api-key|x-goog-api-key)$/i.test(name))
    .map(([, value]) => value);
  return sent.some((value) => world.keys.some((key) => value.includes(key))) ? [] : ['granted without a key'];
}
