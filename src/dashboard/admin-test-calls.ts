import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { SessionCall } from '../http/endpoint.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { Prober } from '../storage/probe.ts';
import { ApiError } from '../errors.ts';
import { routeName } from '../routing/health.ts';
import { planTestCall, TestCallError, type TestCallPlan } from '../test-calls/plan.ts';
import type { TestCall } from '../test-calls/run.ts';
import { testRoute, type TestCallRoute } from '../test-calls/test-call.ts';
import { modelIn, routeIn } from './admin-models.ts';
import { note } from './note.ts';
import { session_endpoint } from './page.ts';
import type { AdminTestCall, AdminTestCallPlan } from './views/admin.ts';

/** Test calls of operators: what `medley models test` does, and nobody's account pays for them. */

/** A real call; its result is kept in memory, for as long as an operator may look at it. */
type StoredTestCall = {
  id: string;
  name: string;
  currency: string;
  begun_at_ms: number;
  test_call?: TestCall;
  failure?: string;
};

/** The calls of this process, by their ids. */
type Calls = Map<string, StoredTestCall>;

/** The parts of the app that a call takes. */
type Parts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Logger;
  readonly catalog: CatalogHolder;
  readonly prober: Prober;
};

const test_calls_max = 10;
const input_length_max = 100_000;
const text_bytes_max = 20_000;
const files_bytes_max = 64_000_000;

/** Endpoints of the page that tries routes. They have the calls in common. */
export function testCallEndpoints() {
  const calls: Calls = new Map();
  return [startEndpoint(calls), resultEndpoint(calls), fileEndpoint(calls)];
}

/** Returns the request to a route; with `real` starts one call of it, which runs on in the background. */
const startEndpoint = (calls: Calls) =>
  session_endpoint(
    'POST',
    '/dash/admin/routes/test',
    'operator',
    async (app, call) => {
      const route = routeOf(app, call);
      const plan = await planned(route, call);
      if (call.body?.['real'] !== true) return { status: 200, body: planView(route, plan) };
      const test_call = begin(calls, route, plan);
      const { estimated_cost, upstream_estimate, currency } = plan;
      await note(app, call, 'route.test', test_call.name, { estimated_cost, upstream_estimate, currency });
      void finish(app, call, test_call, route, plan);
      return { status: 202, body: testCallView(test_call) };
    },
    { body_limit_bytes: 1_000_000 },
  );

function routeOf({ catalog }: Parts, call: SessionCall): TestCallRoute {
  const model = modelIn({ catalog }, call);
  const route = routeIn(model, call);
  const { providers, settings } = catalog.current;
  const provider = providers.get(route.provider);
  if (!provider) throw new ApiError('not_found', `The provider ${route.provider} cannot be used.`, { param: 'route' });
  return { model, route, provider, settings };
}

async function planned(route: TestCallRoute, { body }: SessionCall): Promise<TestCallPlan> {
  const input = body?.['input'];
  const text = typeof input === 'string' && input.trim() !== '' ? input.slice(0, input_length_max) : undefined;
  try {
    return await planTestCall(route, text);
  } catch (error) {
    if (error instanceof TestCallError) throw new ApiError('invalid_input', error.message, { param: 'input' });
    throw error;
  }
}

function planView({ model }: TestCallRoute, { input, sent, ...costs }: TestCallPlan): AdminTestCallPlan {
  const short = (_: string, each: unknown) =>
    typeof each === 'string' && each.length > 200 ? `${each.slice(0, 60)}… (${each.length} characters)` : each;
  const message = typeof input['message'] === 'string' ? input['message'] : '';
  const is_called = model.kind === 'chat' || model.kind === 'embedding';
  const editable = model.media.length > 0 ? null : JSON.stringify(input, undefined, 2);
  return { input: is_called ? message : editable, sent: JSON.stringify(sent, short, 2), ...costs };
}

/** One at a time on each route: a second click must not cost twice. */
function begin(calls: Calls, { model, route }: TestCallRoute, { currency }: TestCallPlan): StoredTestCall {
  const name = routeName(model.id, route.id);
  const running = [...calls.values()].some((each) => each.name === name && isRunning(each));
  if (running) throw new ApiError('conflict', 'A test call of this route is in progress.', { code: 'conflict' });
  const test_call: StoredTestCall = { id: randomUUID(), name, currency, begun_at_ms: performance.now() };
  calls.set(test_call.id, test_call);
  for (const [id, old] of calls) if (calls.size > test_calls_max && !isRunning(old)) calls.delete(id);
  return test_call;
}

function isRunning({ test_call, failure }: StoredTestCall): boolean {
  return test_call === undefined && failure === undefined;
}

/** The log keeps what came of it, for the day on which the provider's bill comes. */
async function finish(
  app: Parts,
  call: SessionCall,
  stored: StoredTestCall,
  route: TestCallRoute,
  plan: TestCallPlan,
): Promise<void> {
  try {
    const test_call = await testRoute(route, plan, app.prober);
    const too_large = test_call.files.reduce((sum, { size_bytes }) => sum + size_bytes, 0) > files_bytes_max;
    stored.test_call = too_large
      ? { ...test_call, files: [], message: 'It produced files that are too large to show here.' }
      : test_call;
    const { outcome, took_ms, message, cost, upstream_cost } = test_call;
    await note(app, call, 'route.tested', stored.name, { outcome, took_ms, message, cost, upstream_cost });
  } catch (error) {
    stored.failure ??=
      error instanceof TestCallError
        ? error.message
        : 'The test call was cut off; the log of the service has the reason.';
    app.log.error({ route: stored.name, err: error }, 'a test call of an operator broke off');
  }
}

function testCallView(stored: StoredTestCall): AdminTestCall {
  const { id, test_call, failure, currency, begun_at_ms } = stored;
  return {
    id,
    is_running: isRunning(stored),
    outcome: test_call?.outcome ?? (failure === undefined ? null : 'failed'),
    took_ms: test_call?.took_ms ?? Math.round(performance.now() - begun_at_ms),
    steps: test_call?.steps ?? [],
    message: failure ?? test_call?.message ?? null,
    text: test_call?.text ?? null,
    files: (test_call?.files ?? []).map(({ bytes, content_type, size_bytes }, index) => {
      const is_short_text = content_type.startsWith('text/') && size_bytes <= text_bytes_max;
      const url = `/dash/admin/test-calls/${id}/files/${index}`;
      return { url, content_type, size_bytes, ...(is_short_text && { text: bytes.toString() }) };
    }),
    cost: test_call?.cost ?? null,
    currency,
    upstream_cost: test_call?.upstream_cost ?? null,
  };
}

function testCallIn(calls: Calls, { params }: SessionCall): StoredTestCall {
  const test_call = calls.get(params['id'] ?? '');
  if (!test_call) throw new ApiError('not_found', 'There is no such test call, or its result is no longer kept.');
  return test_call;
}

/** Returns the progress and the result of a real call. */
const resultEndpoint = (calls: Calls) =>
  session_endpoint('GET', '/dash/admin/test-calls/{id}', 'operator', (_, call) => {
    return { status: 200, body: testCallView(testCallIn(calls, call)) };
  });

const shown_types = /^(image\/(png|jpeg|webp|gif|avif)|video\/(mp4|webm)|audio\/[\w.-]+|text\/plain)$/;

/** A file that it made. Nothing in it may run as a page of this service. */
const fileEndpoint = (calls: Calls) =>
  session_endpoint('GET', '/dash/admin/test-calls/{id}/files/{index}', 'operator', (_, call) => {
    const { index = '' } = call.params;
    const file = /^\d$/.test(index) ? testCallIn(calls, call).test_call?.files[Number(index)] : undefined;
    if (!file) throw new ApiError('not_found', 'There is no such file.');
    const type = file.content_type.split(';')[0] ?? '';
    const headers = {
      'content-type': shown_types.test(type) ? type : 'application/octet-stream',
      'content-disposition': `${shown_types.test(type) ? 'inline' : 'attachment'}; filename="test.${file.extension}"`,
      'content-security-policy': "default-src 'none'; sandbox",
      'x-content-type-options': 'nosniff',
      'cache-control': 'private, no-store',
    };
    return { status: 200, body: file.bytes, headers };
  });
