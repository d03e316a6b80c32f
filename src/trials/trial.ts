import { isMediaKind, type Model, type ProviderConfig, type Route, type Settings } from '../catalog/model.ts';
import { newId } from '../lib/ids.ts';
import { adapters } from '../providers/index.ts';
import type { Prober } from '../storage/probe.ts';
import { tryCall } from './call.ts';
import { TrialError, type TrialPlan } from './plan.ts';
import { tryRun, type Trial } from './run.ts';

/** A route of a model, with the provider behind it. */
export type TrialRoute = { model: Model; route: Route; provider: ProviderConfig; settings: Settings };

/**
 * Makes the one call that was planned: the provider charges for it, and nobody else does. Throws TrialError
 * where it cannot even be tried; what becomes of it is told.
 */
export async function tryRoute(
  { model, route, provider }: TrialRoute,
  plan: TrialPlan,
  prober: Prober,
): Promise<Trial> {
  const adapter = adapters[provider.adapter];
  if (!adapter) throw new TrialError(`There is no adapter ${provider.adapter}.`);
  const { input, sent, currency } = plan;
  const job = { model, route, provider, adapter, prober, input, sent, currency, task_id: newId('task') };
  return isMediaKind(model.kind) ? tryRun(job) : tryCall(job);
}
