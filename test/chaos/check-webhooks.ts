import { createHash, createHmac } from 'node:crypto';
import { groupBy, none, quantile, row, seconds, type Query, type Row } from './findings.ts';
import type { TaskRow } from './check-tasks.ts';
import { retry_delays_ms } from './settings.ts';
import { readJournal, type FaultNote, type ReceiverNote, type SecretNote } from './place.ts';

type DeliveryRow = {
  account_id: string;
  id: string;
  task_id: string;
  event: string;
  url: string;
  body: string;
  state: string;
  attempts: number;
};
type AttemptRow = {
  delivery_id: string;
  number: number;
  status: number | null;
  started_ms: number;
  ended_ms: number;
};

/** Compares the requests to receivers with the tasks and the deliveries of the database. */
export async function checkWebhooks(ask: Query, folder: string, tasks: readonly TaskRow[]): Promise<Row[]> {
  const deliveries = await ask<DeliveryRow>(
    'select account_id, id, task_id, event, url, body, state, attempts from deliveries',
  );
  const attempts = groupBy(
    await ask<AttemptRow>(`select delivery_id, number, status, (extract(epoch from started_at) * 1000)::float8 as started_ms,
         (extract(epoch from ended_at) * 1000)::float8 as ended_ms from delivery_attempts order by number`),
    (attempt) => attempt.delivery_id,
  );
  const notes = readJournal<ReceiverNote>(folder, 'receivers');
  const with_webhook = tasks.filter((task) => task.webhook_url !== null);
  const of_task = groupBy(deliveries, (delivery) => delivery.task_id);
  const received = groupBy(notes, (note) => note.task_id);
  const accepted = (id: string) =>
    (received.get(id) ?? []).filter(({ answer }) => answer === 'accepted' || answer === 'lost');
  const slots = await ask<{ id: string }>(
    'select delivery_id as id from delivery_slots union all select delivery_id from throttled_deliveries',
  );
  return [
    row('webhooks wanted', with_webhook.length),
    row('… attempts written down, webhooks that needed more than one', retried(deliveries)),
    none('webhooks of tasks that have not exactly one', oddOnes(tasks, of_task)),
    none('webhooks never received', missed(with_webhook, of_task, attempts, accepted)),
    row('webhooks dropped after six failed attempts', deliveries.filter(({ state }) => state === 'dropped').length),
    none(
      'webhooks still waiting',
      deliveries
        .filter(({ state }) => state === 'waiting')
        .map(({ id, attempts: count }) => `${id} after ${count} attempts`),
    ),
    none(
      'webhooks received before their task was final',
      notes.filter(({ got }) => got === 'not final').map(({ task_id }) => task_id),
    ),
    none('bytes that differ between task, delivery, attempt and GET', differing(tasks, of_task, notes)),
    row(
      '… attempts compared with GET meanwhile',
      `${notes.filter(({ got }) => got === 'same').length} of ${notes.length}`,
    ),
    none(
      'events that do not fit',
      notes.filter((note) => note.headers['x-service-event'] !== `task.${note.status}`).map(({ task_id }) => task_id),
    ),
    none('signatures that do not verify', await badSignatures(ask, folder, notes, of_task)),
    ...duplicates(folder, notes, deliveries, attempts),
    ...checkSchedule(attempts),
    none(
      'delivery slots left over',
      slots.map(({ id }) => id),
    ),
  ];
}

/** The greatest difference between the clocks of two busy nodes, by which retries are due. */
const clocks_differ_ms = 100;

/** Retries count from the end of the attempt before. */
function checkSchedule(attempts: Map<string, AttemptRow[]>): Row[] {
  const late: number[] = [];
  const early: string[] = [];
  for (const [id, own] of attempts) {
    for (const [i, attempt] of own.entries()) {
      const before = own[i - 1];
      const delay_ms = retry_delays_ms[i - 1];
      if (!before || delay_ms === undefined) continue;
      const after_ms = attempt.started_ms - before.ended_ms;
      if (after_ms < delay_ms - clocks_differ_ms)
        early.push(`${id} attempt ${attempt.number}: after ${after_ms} ms instead of ${delay_ms}`);
      late.push(after_ms - delay_ms);
    }
  }
  const figures = `${seconds(quantile(late, 0.5))} / ${seconds(quantile(late, 0.95))} / ${seconds(Math.max(0, ...late))}`;
  return [none('webhook retries that came early', early), row('… late by (p50 / p95 / max)', figures)];
}

function retried(deliveries: readonly DeliveryRow[]): string {
  const attempts = deliveries.reduce((sum, delivery) => sum + delivery.attempts, 0);
  return `${attempts} for ${deliveries.length}, ${deliveries.filter((delivery) => delivery.attempts > 1).length}`;
}

function oddOnes(tasks: readonly TaskRow[], of_task: Map<string, DeliveryRow[]>): string[] {
  return tasks.flatMap((task) => {
    const own = of_task.get(task.id) ?? [];
    const expected = task.webhook_url === null ? 0 : 1;
    return own.length === expected && own.every(({ url }) => url === task.webhook_url)
      ? []
      : [`${task.id} has ${own.length}`];
  });
}

/** Dropped is right only after six attempts without a good answer, and then it may have arrived all the same. */
function missed(
  with_webhook: readonly TaskRow[],
  of_task: Map<string, DeliveryRow[]>,
  attempts: Map<string, AttemptRow[]>,
  accepted: (id: string) => ReceiverNote[],
): string[] {
  return with_webhook.flatMap(({ id }) => {
    const [delivery] = of_task.get(id) ?? [];
    const delivery_attempts = delivery ? (attempts.get(delivery.id) ?? []) : [];
    if (delivery?.state === 'dropped' && delivery_attempts.length === 6 && !delivery_attempts.some(isGood)) return [];
    const arrived = delivery?.state === 'delivered' && delivery_attempts.some(isGood) && accepted(id).length > 0;
    return arrived ? [] : [`${id} ${delivery?.state} after ${delivery_attempts.length} attempts`];
  });
}

function isGood({ status }: AttemptRow): boolean {
  return status !== null && status >= 200 && status < 300;
}

function differing(
  tasks: readonly TaskRow[],
  of_task: Map<string, DeliveryRow[]>,
  notes: readonly ReceiverNote[],
): string[] {
  const hashes = new Map(
    tasks.map((task) => [
      task.id,
      createHash('sha256')
        .update(task.body ?? '')
        .digest('hex'),
    ]),
  );
  const bodies = new Map(tasks.map((task) => [task.id, task.body]));
  return [
    ...notes.filter((note) => note.sha256 !== hashes.get(note.task_id)).map((note) => `${note.task_id}: an attempt`),
    ...notes.filter((note) => note.got === 'different').map((note) => `${note.task_id}: GET`),
    ...[...of_task.values()]
      .flat()
      .filter((delivery) => delivery.body !== bodies.get(delivery.task_id))
      .map((delivery) => `${delivery.task_id}: the delivery`),
  ];
}

/** An attempt lasts at most 10 s, and may begin with a secret that is read just before. */
const settled_ms = 15_000;

/**
 * `x-service-signature` is by the newest secret, `webhook-signature` by it and the one before. While a
 * rotation is under way either is right.
 */
async function badSignatures(
  ask: Query,
  folder: string,
  notes: readonly ReceiverNote[],
  of_task: Map<string, DeliveryRow[]>,
): Promise<string[]> {
  const history = groupBy(
    readJournal<SecretNote>(folder, 'secrets').toSorted((a, b) => a.done_at_ms - b.done_at_ms),
    (note) => note.account_id,
  );
  for (const { id, webhook_secret } of await ask<{ id: string; webhook_secret: string }>(
    'select id, webhook_secret from accounts',
  )) {
    if (history.get(id)?.at(-1)?.secret !== webhook_secret && history.has(id))
      return [`${id} has a secret that nobody was told`];
  }
  return notes.flatMap((note) => {
    const body = of_task.get(note.task_id)?.[0]?.body ?? '';
    const secrets = history.get(note.account_id) ?? [];
    const newest = secrets.findLastIndex((secret) => secret.done_at_ms < note.at_ms - settled_ms);
    const possible = secrets.slice(Math.max(0, newest)).filter((secret) => secret.began_at_ms <= note.at_ms);
    const plain = possible.some(
      ({ secret }) =>
        note.headers['x-service-signature'] === `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
    );
    const signatures = (note.headers['webhook-signature'] ?? '').split(' ');
    const signs = (secret: string) => signatures.includes(standardSignature(note.headers, body, secret));
    const quiet = possible.length === 1; // no rotation near: exactly the newest, and the one before it
    const before = quiet && newest > 0 ? secrets[newest - 1]?.secret : undefined;
    const standard = possible.some(({ secret }) => signs(secret)) && (before === undefined || signs(before));
    return plain && standard
      ? []
      : [`${note.task_id}: ${plain ? '' : 'x-service-signature '}${standard ? '' : 'webhook-signature'}`];
  });
}

function standardSignature(headers: Record<string, string>, body: string, secret: string): string {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const hmac = createHmac('sha256', key).update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`);
  return `v1,${hmac.digest('base64')}`;
}

/** A task may come twice only where the first answer did not reach the database. */
function duplicates(
  folder: string,
  notes: readonly ReceiverNote[],
  deliveries: readonly DeliveryRow[],
  attempts: Map<string, AttemptRow[]>,
): Row[] {
  const processed = notes.filter(({ answer }) => answer === 'accepted' || answer === 'lost');
  const by_task = groupBy(processed, (note) => note.task_id);
  const repeated = [...by_task.values()].reduce((sum, group) => sum + group.length - 1, 0);
  const needless = deliveries.flatMap(({ id, task_id }) => {
    const successes = (attempts.get(id) ?? []).filter(isGood);
    return successes.length > 1 ? [`${task_id}: ${successes.length} attempts with a good answer`] : [];
  });
  const first_fault_ms = Math.min(...readJournal<FaultNote>(folder, 'faults').map(({ at_ms }) => at_ms));
  const delivery_of = new Map(deliveries.map(({ id, task_id }) => [task_id, id]));
  const calm = [...by_task].flatMap(([task_id, group]) => {
    const answered = group.filter(({ at_ms, answer }) => at_ms < first_fault_ms && answer === 'accepted');
    // On a machine that is slow enough an attempt times out although it was answered, and says so.
    const failed = (attempts.get(delivery_of.get(task_id) ?? '') ?? []).filter((attempt) => !isGood(attempt));
    return answered.length > 1 + failed.length ? [`${task_id}: ${answered.length} times before the first fault`] : [];
  });
  const share = processed.length === 0 ? 0 : repeated / processed.length;
  const too_many = share > 0.5 ? [`${(100 * share).toFixed(1)} % is more than faults explain`] : [];
  return [
    none('webhooks sent again after an answer that was written down', needless),
    none('webhooks that came twice while nothing was wrong', calm),
    row('webhooks processed twice, by a lost answer', `${repeated} (${(100 * share).toFixed(1)} %)`, too_many),
  ];
}
