import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { SessionCall } from '../../http/endpoint.ts';
import type { CatalogHolder } from '../../catalog/catalog.ts';
import { isMediaKind } from '../../catalog/model.ts';
import type { Db } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Prober } from '../../storage/probe.ts';
import { ApiError } from '../../errors.ts';
import { routeName } from '../../routing/health.ts';
import { planTestCall, TestCallError, type TestCallPlan } from '../../test-calls/plan.ts';
import {
  beginTestCall,
  endTestCall,
  findTestCall,
  readTestCallFile,
  type StoredTestCall,
} from '../../test-calls/stored.ts';
import { testRoute, type TestCallRoute } from '../../test-calls/test-call.ts';
import { modelIn, routeIn } from './models.ts';
import { auditAction } from '../audit-action.ts';
import { session_endpoint } from '../page.ts';
import type { AdminTestCall, AdminTestCallPlan } from '../views/admin.ts';

/** Test calls of operators: what `medley models test` does, and nobody's account pays for them. */

/** The parts of the app that a call takes. */
type Parts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Logger;
  readonly catalog: CatalogHolder;
  readonly prober: Prober;
};

const input_length_max = 100_000;

/** A call that is late is stopped, its files are fetched and measured, and the result is written. */
const ending_ms = 120_000;

/** Returns the request to a route; with `real` starts one call of it, which runs on in the background. */
const start_endpoint = session_endpoint(
  'POST',
  '/dash/admin/routes/test',
  'operator',
  async (app, call) => {
    const route = routeOf(app, call);
    const plan = await planned(route, call);
    if (call.body?.['real'] !== true) return { status: 200, body: planView(route, plan) };
    const test_call = await begin(app, route, plan);
    const { estimated_cost, upstream_estimate, currency } = plan;
    await auditAction(app, call, 'route.test', test_call.route, { estimated_cost, upstream_estimate, currency });
    void finish(app, call, test_call, route, plan);
    return { status: 202, body: testCallView(app, test_call) };
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
  const is_called = !isMediaKind(model.kind);
  const editable = model.media.length > 0 ? null : JSON.stringify(input, undefined, 2);
  return { input: is_called ? message : editable, sent: JSON.stringify(sent, short, 2), ...costs };
}

/** One at a time on each route, on all nodes. */
async function begin(
  { db, clock }: Parts,
  { model, route }: TestCallRoute,
  { currency }: TestCallPlan,
): Promise<StoredTestCall> {
  const begun_at = new Date(clock.now());
  const over_at = new Date(begun_at.getTime() + route.timeout_ms.start + route.timeout_ms.total + ending_ms);
  const test_call = { id: randomUUID(), route: routeName(model.id, route.id), currency, begun_at, over_at };
  if (!(await beginTestCall(db, test_call))) {
    throw new ApiError('conflict', 'A test call of this route is in progress.', { code: 'conflict' });
  }
  return { ...test_call, result: null };
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
    await endTestCall(app.db, stored.id, test_call);
    const { outcome, took_ms, message, cost, upstream_cost } = test_call;
    await auditAction(app, call, 'route.tested', stored.route, { outcome, took_ms, message, cost, upstream_cost });
  } catch (error) {
    app.log.error({ route: stored.route, err: error }, 'a test call of an operator broke off');
    const failure = error instanceof TestCallError ? error.message : was_cut_off;
    await endTestCall(app.db, stored.id, { failure }).catch(() => undefined); // it is over by its time, then
  }
}

const was_cut_off = 'The test call was cut off; the log of the service has the reason.';

function testCallView({ clock }: Pick<Parts, 'clock'>, stored: StoredTestCall): AdminTestCall {
  const { id, currency, begun_at, over_at } = stored;
  const result = stored.result ?? (over_at.getTime() < clock.now() ? { failure: was_cut_off } : null);
  const ended = result && result.failure === null ? result : undefined;
  return {
    id,
    is_running: result === null,
    outcome: ended?.outcome ?? (result === null ? null : 'failed'),
    took_ms: ended?.took_ms ?? Math.round(Math.min(clock.now(), over_at.getTime()) - begun_at.getTime()),
    steps: ended?.steps ?? [],
    message: result?.failure ?? ended?.message ?? null,
    text: ended?.text ?? null,
    files: (ended?.files ?? []).map(({ content_type, size_bytes, text }, index) => {
      const url = `/dash/admin/test-calls/${id}/files/${index}`;
      return { url, content_type, size_bytes, ...(text !== undefined && { text }) };
    }),
    cost: ended?.cost ?? null,
    currency,
    upstream_cost: ended?.upstream_cost ?? null,
  };
}

async function testCallIn({ db }: Pick<Parts, 'db'>, { params }: SessionCall): Promise<StoredTestCall> {
  const test_call = await findTestCall(db, params['id'] ?? '');
  if (!test_call) throw new ApiError('not_found', 'There is no such test call, or its result is no longer kept.');
  return test_call;
}

/** Returns the progress and the result of a real call. */
const result_endpoint = session_endpoint('GET', '/dash/admin/test-calls/{id}', 'operator', async (app, call) => {
  return { status: 200, body: testCallView(app, await testCallIn(app, call)) };
});

const shown_types = /^(image\/(png|jpeg|webp|gif|avif)|video\/(mp4|webm)|audio\/[\w.-]+|text\/plain)$/;

/** A file that it made. Nothing in it may run as a page of this service. */
const file_endpoint = session_endpoint(
  'GET',
  '/dash/admin/test-calls/{id}/files/{index}',
  'operator',
  async (app, call) => {
    const index = /^\d$/.test(call.params['index'] ?? '') ? Number(call.params['index']) : -1;
    const { id, result } = await testCallIn(app, call);
    const file = result?.failure === null ? result.files[index] : undefined;
    const bytes = file && (await readTestCallFile(app.db, id, index));
    if (!bytes) throw new ApiError('not_found', 'There is no such file.');
    const type = file.content_type.split(';')[0] ?? '';
    const headers = {
      'content-type': shown_types.test(type) ? type : 'application/octet-stream',
      'content-disposition': `${shown_types.test(type) ? 'inline' : 'attachment'}; filename="test.${file.extension}"`,
      'content-security-policy': "default-src 'none'; sandbox",
      'x-content-type-options': 'nosniff',
      'cache-control': 'private, no-store',
    };
    return { status: 200, body: bytes, headers };
  },
);

/** Endpoints of the page that tries routes. */
export const test_call_endpoints = [start_endpoint, result_endpoint, file_endpoint];
