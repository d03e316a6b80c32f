import { ApiError, service_errors } from '../errors.ts';
import type { Endpoint } from '../http/endpoint.ts';

/** One thing that must be so before requests make sense: `ok`, or what is wrong. */
export type Check<App> = (app: App) => Promise<string> | string;

export type HealthOptions<App> = {
  checks: Record<string, Check<App>>;
  /** Monotonic milliseconds. */
  elapsed_ms?: () => number;
};

/** Balancers ask often and from many places; the database is asked once a second at most. */
const fresh_ms = 1_000;

/** A check that takes longer has failed: a balancer does not wait for it either. */
const check_ms_max = 2_000;

type Result = { ready: boolean; checks: Record<string, string> };

/** /livez says that the process answers, /readyz that it can serve. Neither needs a key. */
export function healthEndpoints<App>({
  checks,
  elapsed_ms = () => performance.now(),
}: HealthOptions<App>): Endpoint<App>[] {
  let latest: { result: Promise<Result>; until_ms: number } | undefined;
  const look = (app: App) => {
    if (!latest || latest.until_ms <= elapsed_ms())
      latest = { result: runChecks(app, checks), until_ms: elapsed_ms() + fresh_ms };
    return latest.result;
  };
  return [
    {
      method: 'GET',
      path: '/livez',
      public: true,
      lenient_query: true,
      docs: {
        tag: 'Service',
        summary: 'Check that the process is alive',
        description: 'For whoever restarts processes: looks at nothing but this process.',
        responses: {
          200: {
            description: 'The process is alive.',
            schema: { type: 'object', properties: { status: { const: 'ok' } } },
          },
        },
      },
      handle: () => ({ status: 200, body: { status: 'ok' }, headers: { 'cache-control': 'no-store' } }),
    },
    {
      method: 'GET',
      path: '/readyz',
      public: true,
      lenient_query: true,
      docs: {
        tag: 'Service',
        summary: 'Check that the service is ready',
        description: 'For load balancers: looks at the database and the other parts that a request needs.',
        responses: {
          200: { description: 'The service is ready: every check is `ok`.', schema: ready_schema },
          503: { description: 'The service is not ready: `error.checks` has the reasons.' },
        },
      },
      handle: async (app, { draining, request_id }) => {
        // Not remembered like the rest: balancers must hear of a shutdown at once.
        const { ready, checks: results } = draining.aborted ? stopping : await look(app);
        const headers = { 'cache-control': 'no-store' };
        if (ready) return { status: 200, headers, body: { status: 'ready', checks: results } };
        return { status: 503, headers, body: notReady(results, request_id) };
      },
    },
  ];
}

const ready_schema = {
  type: 'object',
  properties: { status: { const: 'ready' }, checks: { type: 'object', additionalProperties: { type: 'string' } } },
};

const stopping: Result = { ready: false, checks: { draining: 'the service is stopping' } };

async function runChecks<App>(app: App, checks: Record<string, Check<App>>): Promise<Result> {
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => [name, await runCheck(() => check(app))] as const),
  );
  return { ready: results.every(([, text]) => text === 'ok'), checks: Object.fromEntries(results) };
}

/** A failure is told without its detail: anybody may ask. */
async function runCheck(check: () => Promise<string> | string): Promise<string> {
  const { promise: late, resolve } = Promise.withResolvers<string>();
  const timer = setTimeout(() => resolve(`no answer within ${check_ms_max / 1000} s`), check_ms_max);
  try {
    return await Promise.race([check(), late]);
  } catch {
    return 'failed';
  } finally {
    clearTimeout(timer);
  }
}

function notReady(checks: Record<string, string>, request_id: string): object {
  const failed = Object.keys(checks).filter((name) => checks[name] !== 'ok');
  const error = new ApiError('unavailable', `Not ready: ${failed.join(', ')}.`);
  const rendered = service_errors.render(error, request_id);
  return { error: { ...('error' in rendered && typeof rendered.error === 'object' && rendered.error), checks } };
}
