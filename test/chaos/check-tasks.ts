import { groupBy, none, quantile, row, seconds, type Query, type Row } from './findings.ts';
import { readJournal, type CallNote, type FaultNote, type UpstreamNote } from './place.ts';

export type TaskRow = {
  account_id: string;
  id: string;
  model: string;
  status: string;
  body: string | null;
  webhook_url: string | null;
  error_type: string | null;
  call: string;
  created_ms: number;
  completed_ms: number | null;
};

export function readTasks(ask: Query): Promise<TaskRow[]> {
  return ask<TaskRow>(
    `select account_id, id, model, status, body, webhook_url, error_type, metadata::json->>'call' as call,
       (extract(epoch from created_at) * 1000)::float8 as created_ms,
       (extract(epoch from completed_at) * 1000)::float8 as completed_ms from tasks`,
  );
}

/** Compares the promises to callers with the rows that are there. */
export function checkCalls(folder: string, tasks: readonly TaskRow[]): Row[] {
  const calls = readJournal<CallNote>(folder, 'calls');
  const by_id = new Map(tasks.map((task) => [task.id, task]));
  const by_call = groupBy(tasks, (task) => task.call);
  const answered = calls.filter((call) => call.outcome === 'ok');
  const is_final = (id: string) => ['succeeded', 'failed'].includes(by_id.get(id)?.status ?? '');
  const twice = [...groupBy(calls, (call) => call.call)].flatMap(([call, notes]) => {
    const count = by_call.get(call)?.length ?? 0;
    const [first] = notes;
    const allowed = first?.idempotent ? 1 : notes.filter((note) => note.outcome !== 'refused').length;
    return count > allowed ? [`call ${call} was made ${notes.length} times and has ${count} tasks`] : [];
  });
  const refused = calls.filter((call) => call.outcome === 'refused' && (by_call.get(call.call)?.length ?? 0) > 0);
  const call_names = new Set(calls.map((call) => call.call));
  return [
    row('tasks acknowledged', answered.length),
    none(
      'acknowledged tasks that are lost',
      answered.filter((call) => !is_final(call.task_id)).map((call) => call.task_id),
    ),
    none(
      'tasks that are not final',
      tasks.filter((task) => !is_final(task.id)).map((task) => `${task.id} ${task.status}`),
    ),
    none('tasks made twice by one call', twice),
    none('tasks of calls that were refused, or that nobody made', [
      ...refused.filter((call) => !call.idempotent).map((call) => call.call),
      ...tasks.filter((task) => !call_names.has(task.call)).map((task) => task.id),
    ]),
    row(
      'calls refused / without an answer',
      `${calls.filter((call) => call.outcome === 'refused').length} / ${calls.filter((call) => call.outcome === 'unknown').length}`,
    ),
    row(
      'tasks succeeded / failed',
      `${tasks.filter((task) => task.status === 'succeeded').length} / ${tasks.filter((task) => task.status === 'failed').length}`,
    ),
  ];
}

type AttemptRow = { task_id: string; number: number; route: string; state: string; created_ms: number };

/** Compares the requests to the upstream with the attempts that were written down. */
export async function checkUpstream(ask: Query, folder: string, tasks: readonly TaskRow[]): Promise<Row[]> {
  const notes = readJournal<UpstreamNote>(folder, 'upstream');
  const attempts = await ask<AttemptRow>(
    `select task_id, number, route, state, (extract(epoch from created_at) * 1000)::float8 as created_ms from attempts order by number`,
  );
  const attempts_of = groupBy(attempts, (attempt) => attempt.task_id);
  const model_of = new Map(tasks.map((task) => [task.id, task.model]));
  const taken = groupBy(
    notes.filter((note) => note.event === 'taken'),
    (note) => note.task_id,
  );
  const twice = [...taken].flatMap(([id, runs]) => {
    const states = (attempts_of.get(id) ?? []).map((attempt) => attempt.state);
    // The operator's choice for this model: the next route after a submit whose fate is unknown, or that was late.
    const allowed =
      1 +
      states.filter(
        (state) => (state === 'ambiguous' && model_of.get(id) === 'chaos/failover') || state === 'not_started',
      ).length;
    return runs.length > allowed ? [`${id} was run ${runs.length} times, attempts: ${states.join(', ')}`] : [];
  });
  const unwritten = notes.filter((note) => {
    const own = attempts_of.get(note.task_id) ?? [];
    return note.event === 'asked' && !own.some((attempt) => attempt.created_ms <= note.at_ms + 2);
  });
  const unearned = tasks.filter(
    (task) =>
      task.status === 'succeeded' &&
      !(taken.get(task.id) ?? []).some(({ order }) => order.way !== 'fail' && order.way !== 'broken'),
  );
  const ambiguous = attempts.filter((attempt) => attempt.state === 'ambiguous');
  const resubmitted = notes.filter((note) => note.event === 'repeated').length;
  return [
    row('upstream: runs taken', [...taken.values()].flat().length),
    none('upstream: tasks run twice against the rule', twice),
    none(
      'upstream: submits that were not written down before',
      unwritten.map((note) => `${note.task_id} ${note.route}`),
    ),
    none(
      'tasks that succeeded without a run',
      unearned.map((task) => task.id),
    ),
    none(
      'attempts left open',
      attempts.filter(({ state }) => state === 'submitting' || state === 'accepted').map(({ task_id }) => task_id),
    ),
    row('upstream: submits nobody knows of (refunded) / repeated safely', `${ambiguous.length} / ${resubmitted}`),
  ];
}

const kills = /^kill -9|^all connections|^SIGSTOP/;

/** Measures the time until things go on: the first task that ends after a fault, and the last of those that were under way. */
export function measureRecovery(folder: string, tasks: readonly TaskRow[]): Row[] {
  const faults = readJournal<FaultNote>(folder, 'faults').filter(({ fault }) => kills.test(fault));
  const ends = tasks.map((task) => task.completed_ms ?? Number.POSITIVE_INFINITY).toSorted((a, b) => a - b);
  const first: number[] = [];
  const all: number[] = [];
  for (const { at_ms } of faults) {
    const next_ms = ends.find((end_ms) => end_ms > at_ms);
    if (next_ms !== undefined) first.push(next_ms - at_ms);
    const under_way = tasks.filter(
      (task) => task.created_ms < at_ms && (task.completed_ms ?? Number.POSITIVE_INFINITY) > at_ms,
    );
    if (under_way.length > 0)
      all.push(Math.max(...under_way.map((task) => (task.completed_ms ?? Number.POSITIVE_INFINITY) - at_ms)));
  }
  const pair = (values: readonly number[]) =>
    `${seconds(quantile(values, 0.5))} / ${seconds(quantile(values, 0.95))} / ${seconds(Math.max(0, ...values))}`;
  const durations = tasks.map((task) => (task.completed_ms ?? Number.POSITIVE_INFINITY) - task.created_ms);
  return [
    row('after a fault, the next task ended after (p50 / p95 / max)', pair(first)),
    row('after a fault, all that were under way had ended after (p50 / p95 / max)', pair(all)),
    row('from creation to the end of a task (p50 / p95 / max)', pair(durations)),
  ];
}
