import type { MediaParts } from '../tasks/media.ts';
import type { Clock } from '../lib/clock.ts';
import type { Db } from '../db/database.ts';
import type { Caller } from '../accounts/authenticate.ts';
import { withTempFiles, type TempFileParts } from '../files/temp-files.ts';
import { balanceOf, budgetsOf } from '../money/ledger.ts';
import { balanceView, estimateView, money_max, type Cost, type Money } from '../money/money.ts';
import type { Funds, Holds } from '../money/holds.ts';
import { priceTaskRequest } from '../tasks/create.ts';
import { pausedUntil } from '../tasks/pause.ts';
import type { Answer, Call, Endpoint, PublicCall } from '../http/endpoint.ts';
import { estimate as estimate_schema, generate_body } from './schemas.ts';

/** The parts of the app that estimating takes. */
type Parts = MediaParts & TempFileParts & { readonly holds: Holds };

export const estimate: Endpoint<Parts> = {
  method: 'POST',
  path: '/v1/estimate',
  body_limit_bytes: 20_000_000,
  docs: {
    tag: 'Tasks',
    summary: 'Estimate a task',
    description:
      'Takes the body of POST /v1/generate and returns the amount to hold. Nothing is created or held. `available` is null for a key that is limited to a project.',
    body: {
      schema: generate_body,
      examples: { image: { model: 'sandbox/image', input: { prompt: 'a red bicycle' } } },
    },
    responses: { 200: { description: 'The estimate.', schema: estimate_schema } },
    errors: [403, 404, 422],
  },
  handle: handleEstimate,
};

async function handleEstimate(app: Parts, call: Call): Promise<Answer> {
  const { caller } = call;
  const { estimated_cost, available, obstacle } = await estimateTask(app, caller, call);
  const shown = caller.key.is_limited ? null : available; // the balance is about the whole account
  return { status: 200, body: { estimated_cost, available: shown, allowed: obstacle === null } };
}

/** Reasons why a task cannot be created now. */
export type Obstacle = 'account_blocked' | 'insufficient_balance' | 'spend_limit' | 'failures_pause';

/** `key_left`: what is left of the monthly limit of the key, null if it has none. */
export type CostEstimate = {
  estimated_cost: Cost;
  available: Cost;
  key_left: Cost | null;
  obstacle: Obstacle | null;
  paused_until: Date | null;
};

/** Checks a body of POST /v1/generate as it is checked there, and compares its price with what may be spent. */
export async function estimateTask(
  app: Parts,
  caller: Caller,
  call: Pick<PublicCall, 'body' | 'gone'>,
): Promise<CostEstimate> {
  const request = await withTempFiles(app, caller.account.id, call, (spool) =>
    priceTaskRequest(app, caller, call.body ?? {}, { spool }),
  );
  const paused = await pausedUntil(
    app.db,
    caller.account.id,
    app.catalog.current.settings.limits.failed_per_24h,
    new Date(app.clock.now()),
  );
  const cost_estimate = await estimateHold(app, caller, request.estimate);
  const is_paused = paused !== undefined && cost_estimate.obstacle !== 'account_blocked';
  return { ...cost_estimate, ...(is_paused && { obstacle: 'failures_pause' }), paused_until: paused ?? null };
}

/**
 * Checks a hold of this amount, or of the amount that the money allows, without making it. For a limited key, the cost is what
 * would be held with plenty of money: a hold that was cut to the balance would say how much there is.
 */
export async function estimateHold(
  app: { db: Db; clock: Clock; holds: Holds },
  { account, key }: Caller,
  amount: Money | ((funds: Funds) => Money),
): Promise<CostEstimate> {
  const { id, currency, status } = account;
  await app.holds.flush(id);
  const balance = await balanceOf(app.db, id);
  const available = (balance?.amount ?? 0n) - (balance?.held ?? 0n);
  const [budget] = await budgetsOf(app.db, id, new Date(app.clock.now()), [key.id]);
  const remaining = budget?.limit_month == null ? null : budget.limit_month - budget.spent - budget.held;
  const amountOf = (funds: Funds) => (typeof amount === 'function' ? amount(funds) : amount);
  const hold = amountOf({ available, remaining });
  const shown = key.is_limited ? amountOf({ available: money_max, remaining }) : hold;
  const obstacles: [Obstacle, boolean][] = [
    ['account_blocked', status !== 'active'],
    ['insufficient_balance', hold > available],
    ['spend_limit', remaining !== null && hold > remaining],
  ];
  return {
    estimated_cost: estimateView(shown, currency),
    available: balanceView(available, currency),
    key_left: remaining === null ? null : balanceView(remaining, currency),
    obstacle: obstacles.find(([, is_there]) => is_there)?.[0] ?? null,
    paused_until: null,
  };
}
