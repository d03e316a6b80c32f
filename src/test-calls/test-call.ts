import { isMediaKind, type Model, type ProviderConfig, type Route, type Settings } from '../catalog/model.ts';
import { newId } from '../lib/ids.ts';
import { adapters } from '../providers/index.ts';
import type { Prober } from '../storage/probe.ts';
import { runTestCall } from './call.ts';
import { TestCallError, type TestCallPlan } from './plan.ts';
import { runTask, type TestCall } from './run.ts';

/** A route of a model, with the provider behind it. */
export type TestCallRoute = { model: Model; route: Route; provider: ProviderConfig; settings: Settings };

/**
 * Makes the one call that was planned: the provider charges for it, and nobody else does. Throws TestCallError
 * where it cannot even be tried; what becomes of it is told.
 */
export async function testRoute(
  { model, route, provider }: TestCallRoute,
  plan: TestCallPlan,
  prober: Prober,
): Promise<TestCall> {
  const adapter = adapters[provider.adapter];
  if (!adapter) throw new TestCallError(`There is no adapter ${provider.adapter}.`);
  const { input, sent, currency } = plan;
  const job = { model, route, provider, adapter, prober, input, sent, currency, task_id: newId('task') };
  return isMediaKind(model.kind) ? runTask(job) : runTestCall(job);
}
