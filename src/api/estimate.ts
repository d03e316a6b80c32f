import type { App } from '../app.ts';
import { balanceOf, budgetsOf } from '../money/ledger.ts';
import { balanceView, estimateView } from '../money/money.ts';
import { readOrder } from '../tasks/create.ts';
import { pausedUntil } from '../tasks/pause.ts';
import type { Answer, Call, Endpoint } from './endpoint.ts';
import { estimate as estimate_schema, generate_body } from './schemas.ts';

export const estimate: Endpoint<App> = {
  method: 'POST',
  path: '/v1/estimate',
  format: 'service',
  body_limit_bytes: 20_000_000,
  docs: {
    tag: 'Tasks',
    summary: 'Estimate a task',
    description: 'Takes the body of POST /v1/generate and tells what would be held. Nothing is created or held.',
    body: {
      schema: generate_body,
      examples: { image: { model: 'sandbox/image', input: { prompt: 'a red bicycle' } } },
    },
    responses: { 200: { description: 'The estimate.', schema: estimate_schema } },
    errors: [404, 422],
  },
  handle: handleEstimate,
};

async function handleEstimate(app: App, { caller, body }: Call): Promise<Answer> {
  const order = await readOrder(app, caller, body ?? {});
  const now = new Date(app.clock.now());
  const { id, currency, status } = caller.account;
  const balance = await balanceOf(app.db, id);
  const available = (balance?.amount ?? 0n) - (balance?.held ?? 0n);
  const [budget] = await budgetsOf(app.db, id, now, caller.key.id);
  const within_limit = budget?.limit_month == null || budget.spent + budget.held + order.estimate <= budget.limit_month;
  const paused = await pausedUntil(app.db, id, app.catalog.current.settings.limits.failed_per_24h, now);
  return {
    status: 200,
    body: {
      estimated_cost: estimateView(order.estimate, currency),
      available: balanceView(available, currency),
      allowed: status === 'active' && order.estimate <= available && within_limit && paused === undefined,
    },
  };
}
