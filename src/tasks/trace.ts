import type { Attributes, SpanOptions } from '../tracing/tracer.ts';
import type { Attempt, Task } from './task.ts';

/** Returns what a span says of a task: nothing of its input, and nothing that the caller wrote. */
export function spanFacts({ id, model, kind }: Pick<Task, 'id' | 'model' | 'kind'>): Attributes {
  return { 'medley.task_id': id, 'medley.model': model, 'gen_ai.output.type': kind };
}

/** Returns the span of a call of an upstream. */
export function clientSpan(
  verb: 'submit' | 'poll',
  task: Pick<Task, 'id' | 'model' | 'kind'>,
  { route, provider }: Pick<Attempt, 'route' | 'provider'>,
): SpanOptions {
  const attributes = { ...spanFacts(task), 'medley.route': route, 'gen_ai.provider.name': provider };
  return { name: `${verb} ${route}`, kind: 'client', attributes };
}
