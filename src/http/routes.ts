import { ApiError } from '../errors.ts';
import type { WindowName } from '../limits/window.ts';
import type { Endpoint, KeyedEndpoint } from './endpoint.ts';

/** Facts about paths that their endpoints do not state. */
export type RouteTable<App> = {
  /** Tells whether an unknown path or method at `path` needs a key first. */
  needsKey(path: string): boolean;
  windowOf(path: string): WindowName;
  /**
   * Returns the URL below /v1 that an API client means whose base URL lacks `/v1` or has it where the client adds it
   * itself; undefined if there is nothing either.
   */
  meantUrl(url: string): string | undefined;
  /** 405 if the path exists for other methods, else 404. */
  unknown(method: string, path: string): ApiError;
  /**
   * The decoded values of the endpoint's `{name}` parts, as the router found them; undefined if one
   * is empty, which the router takes for a match and we do not.
   */
  params(endpoint: Endpoint<App>, path_values: Record<string, string | undefined>): Record<string, string> | undefined;
};

const none: Record<string, string> = {};

type Pattern<App> = { endpoint: Endpoint<App>; regex: RegExp; names: string[] };

export function compileRoutes<App>(endpoints: readonly Endpoint<App>[]): RouteTable<App> {
  const patterns = endpoints.map((endpoint): Pattern<App> => {
    const names = [...endpoint.path.matchAll(/\{\+?(\w+)\}/g)].map((match) => match[1] ?? '');
    return { endpoint, regex: pathRegex(endpoint.path), names };
  });
  const at = (path: string) => patterns.filter(({ regex }) => regex.test(path)).map(({ endpoint }) => endpoint);
  const namesOf = new Map(patterns.map(({ endpoint, names }) => [endpoint, names]));
  return {
    needsKey(path) {
      const endpoints_there = at(asRouted(path));
      return endpoints_there.length > 0
        ? endpoints_there.some(isKeyed)
        : /^(?:\/upload)?\/v1(?:beta)?(\/|$)/.test(decodePath(path));
    },
    /** A wrong method on a chat path counts as chat: the specification limits the path, not the method. */
    windowOf(path) {
      return at(asRouted(path)).some((endpoint) => isKeyed(endpoint) && endpoint.window === 'chat') ? 'chat' : 'other';
    },
    meantUrl(url) {
      const [path = '', ...query] = url.split(/(?=\?)/);
      if (at(asRouted(path)).some((endpoint) => !isPage(endpoint))) return undefined;
      const meant = belowVersion(path);
      return at(asRouted(meant)).some(isKeyed) ? [meant, ...query].join('') : undefined;
    },
    unknown(method, path) {
      const endpoints_there = at(asRouted(path));
      return endpoints_there.length > 0 ? wrongMethod(method, endpoints_there) : notFound(method, decodePath(path), at);
    },
    params(endpoint, path_values) {
      const names = namesOf.get(endpoint) ?? [];
      if (names.length === 0) return none;
      const values = Object.values(path_values).map(String);
      if (values.includes('')) return undefined;
      return Object.fromEntries(names.map((name, index) => [name, values[index] ?? '']));
    },
  };
}

function isKeyed<App>(endpoint: Endpoint<App>): endpoint is KeyedEndpoint<App> {
  return !endpoint.public && endpoint.session === undefined;
}

/** A model's id with a slash: Google's first SDK, `@google/generative-ai`, leaves out the `models/` before it. */
const beta_model =
  /^\/v1beta\/(?!models\/|files\/)(?=[^:]+:(?:generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)$)/;

/** Returns the path that is meant by one that lacks `/v1` or has it twice, or `models/` below /v1beta; any other as it is. */
export function belowVersion(path: string): string {
  if (/^\/v1\/(?:v1|v1beta|upload\/v1|upload\/v1beta)\//.test(path)) return path.slice('/v1'.length);
  if (beta_model.test(path)) return path.replace(beta_model, '/v1beta/models/');
  return path.startsWith('/v1/') || isBeta(path) ? path : `/v1${path}`;
}

/** Tells whether a path is one of Gemini's, whose version has another name. */
export function isBeta(path: string): boolean {
  return /^\/(?:v1beta|upload\/v1|upload\/v1beta)(?:\/|$)/.test(path);
}

/** Tells whether an endpoint is a page of the dashboard, which has names such as `/models`, too. */
function isPage<App>({ public: is_public, docs }: Endpoint<App>): boolean {
  return is_public === true && docs.hidden === true && docs.tag === 'Dashboard';
}

/** `/v1/tasks/{id}` as the router writes it: `/v1/tasks/:id`; `{+id}` takes the rest of the path. */
export function routerPath(path: string): string {
  return path.replace(/\{\+\w+\}$/, '*').replaceAll(/\{(\w+)\}/g, ':$1');
}

function pathRegex(path: string): RegExp {
  const source = path
    .replaceAll('.', '\\.')
    .replace(/\{\+\w+\}$/, '.+')
    .replaceAll(/\{\w+\}/g, '[^/]+');
  return new RegExp(`^${source}$`, 's'); // an id may hold a line break, however wrong it is
}

/** `GET http://host/path`, as to a proxy: the router takes it for /path too (RFC 9112, 3.2.2). */
export const absolute_form = /^https?:\/\/[^/?#]*/i;

/** Percent-decoded; as it is if it cannot be decoded. */
export function decodePath(path: string): string {
  if (!path.includes('%')) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** Decoded, but a slash that is written as %2F separates nothing: the router sees it so too. */
function asRouted(path: string): string {
  return decodePath(path.replaceAll(/%2f/gi, '%252F'));
}

function wrongMethod<App>(method: string, endpoints: Endpoint<App>[]): ApiError {
  const methods = endpoints.flatMap((endpoint) => (endpoint.method === 'GET' ? ['GET', 'HEAD'] : [endpoint.method]));
  const allow = [...new Set(methods)].join(', ');
  const message = `${method} is not allowed here; this path accepts ${allow}.`;
  return new ApiError('method_not_allowed', message, { headers: { allow } });
}

function notFound<App>(method: string, path: string, at: (path: string) => Endpoint<App>[]): ApiError {
  // The mistakes in a base URL: /v1 forgotten, or written where the SDK adds it by itself, or a / at the end.
  const candidates = [`/v1${path}`, path.replace(/^\/v1\/v1\//, '/v1/'), path.replace(/\/+$/, '')];
  const likely = candidates.find((other) => other !== path && at(other).length > 0);
  const hint = likely === undefined ? '' : ` Did you mean ${likely}?`;
  return new ApiError('not_found', `There is nothing at ${method} ${path.slice(0, 60)}.${hint}`);
}
