import type { Logger } from 'pino';
import type { Mailer } from '../accounts/mailer.ts';
import { alertMail } from '../accounts/mails.ts';
import { failures_max, sendMail } from '../billing/notices.ts';
import type { Db, Queryable } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { assert } from '../lib/assert.ts';
import type { Guard } from '../net/guard.ts';
import type { Engine } from '../queue/queue.ts';
import { addAlertDelivery } from '../webhooks/delivery.ts';
import type { Audience } from './alert.ts';
import { mailText, webhookBody, type AlertFacts, type NoticeEvent } from './message.ts';
import { postToOperators } from './post.ts';
import { isQuiet } from './quiet.ts';
import { operators_key, reachOf, type Reach, type ReachParts } from './reach.ts';

/** The parts of the app that sending takes. */
export type NoticeParts = ReachParts & {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Logger;
  readonly mailer: Mailer;
  readonly guard: Guard;
  readonly engine: Pick<Engine, 'wake'>;
};

type Channel = 'mail' | 'webhook';

/** An alert of which something is to be said by a channel. */
type Due = AlertFacts & { channel: Channel };

/** A message that this process alone may send. */
type Claim = { number: number; event: NoticeEvent; claims: number; failures: number };

/**
 * Sends every message that is due. Several nodes may do so at once: each message has one sender. What quiet hours, a
 * limit per hour, or a server that is away hold up is sent by a later call, if it is news by then.
 */
export async function sendNotices(app: NoticeParts, audience: Audience, stopped?: AbortSignal): Promise<void> {
  const run: Run = { full: new Set(), failures: 0, surprises: 0 };
  for (let after: Due | undefined, is_last = false; !is_last;) {
    const due = await dueNotices(app.db, audience, new Date(app.clock.now()), after);
    const ids = [...new Set(due.map(({ account_id }) => account_id ?? operators_key))];
    const reaches = await reachOf(app, audience, ids);
    for (const one of due) {
      if (stopped?.aborted) return;
      const reach = reaches.get(one.account_id ?? operators_key);
      if (reach) await sendIfPossible(app, run, one, reach);
    }
    after = due.at(-1);
    is_last = due.length < due_max;
  }
}

/** Ways that are full for the hour, mails that failed, and errors that nobody expects. */
type Run = { full: Set<string>; failures: number; surprises: number };

async function sendIfPossible(app: NoticeParts, run: Run, due: Due, reach: Reach): Promise<void> {
  const { channel, level, account_id } = due;
  const way = `${channel} ${account_id ?? operators_key}`;
  if (run.full.has(way) || !canReach(app, reach, channel)) return;
  if (level < 2 && reach.quiet && isQuiet(reach.quiet, app.clock.now())) return;
  if (channel === 'mail' && run.failures >= failures_max) return;
  try {
    const outcome = await sendOne(app, due, reach);
    if (outcome === 'full') run.full.add(way);
    if (outcome === 'failed') run.failures += 1;
  } catch (error) {
    if (++run.surprises === failures_max) throw error; // the database, or all of them
    app.log.error({ alert: due.id, channel, err: error }, 'a message about an alert could not be sent');
  }
}

function canReach({ mailer }: NoticeParts, { mail, webhook }: Reach, channel: Channel): boolean {
  return channel === 'mail' ? mail.length > 0 && mailer.ready() : webhook !== undefined;
}

/** In one read. Those that nobody can be sent stay due. */
const due_max = 1_000;

/** The critical ones first, then those of the oldest alerts; those after `after`. */
async function dueNotices(db: Queryable, audience: Audience, now: Date, after: Due | undefined): Promise<Due[]> {
  return db.query<Due>(
    `select * from (select a.id, a.account_id, a.kind, a.subject, a.level, a.title, a.summary, a.opened_at, a.closed_at, c.channel
         from alerts a cross join (values ('mail'), ('webhook')) c (channel)
         left join lateral (select x as last from alert_notices x where x.alert_id = a.id and x.channel = c.channel
           order by x.number desc limit 1) n on true
        where (a.closed_at is null or a.closed_at > $1::timestamptz - interval '1 day')
          and a.account_id is ${audience === 'accounts' ? 'not null' : 'null'}
          and alert_event(a, n.last, $1) is not null) due
      where $2::smallint is null or level < $2 or level = $2 and (opened_at, id, channel) > ($3, $4, $5)
      order by level desc, opened_at, id, channel limit ${due_max}`,
    [now, after?.level ?? null, after?.opened_at ?? null, after?.id ?? null, after?.channel ?? null],
  );
}

type Sent = 'done' | 'full' | 'none' | 'failed';

async function sendOne(app: NoticeParts, due: Due, reach: Reach): Promise<Sent> {
  if (due.channel === 'webhook' && due.account_id !== null) return handToDeliveries(app, due, reach);
  const claim = await claimNotice(app.db, due, reach, new Date(app.clock.now()));
  if (typeof claim === 'string') return claim;
  return due.channel === 'mail' ? mailNotice(app, due, reach, claim) : postNotice(app, due, reach, claim);
}

async function claimNotice(db: Queryable, due: Due, reach: Reach, now: Date): Promise<Claim | 'full' | 'none'> {
  const [row] = await db.query<{ answer: 'claimed' | 'full' | 'none' } & Claim>(
    'select * from claim_alert($1, $2, $3, $4)',
    [now, due.id, due.channel, reach.per_hour_max],
  );
  assert(row, 'a claim is answered');
  return row.answer === 'claimed' ? row : row.answer;
}

/** One transaction claims the message and writes its delivery, which is then signed, sent and retried like any other. */
async function handToDeliveries(app: NoticeParts, due: Due, reach: Reach): Promise<Sent> {
  const { account_id } = due;
  const { webhook, link } = reach;
  assert(account_id !== null && webhook, 'an account with a receiver');
  const now_ms = app.clock.now();
  const outcome = await app.db.tx(async (tx): Promise<Sent> => {
    const claim = await claimNotice(tx, due, reach, new Date(now_ms));
    if (typeof claim === 'string') return claim;
    const { event, number } = claim;
    const body = webhookBody(due, event, number, link);
    await addAlertDelivery(tx, { account_id, event: `alert.${event}`, url: webhook.url, body }, now_ms);
    await settleNotice(tx, due, claim, { state: 'sent', at: new Date(now_ms) });
    return 'done';
  });
  if (outcome === 'done') app.engine.wake('delivery.send');
  return outcome;
}

const retry_first_ms = 60_000;
const retry_max_ms = 3_600_000;

async function mailNotice(app: NoticeParts, due: Due, reach: Reach, claim: Claim): Promise<Sent> {
  const { event, number, failures } = claim;
  const text = mailText(due, event, reach.place, reach.link);
  // Who gets it twice, since a process died before it could note the first time, sees one mail.
  const mail = { ...alertMail(reach.mail, text), id: `${due.id}-${number}-${event}` };
  const outcome = await sendMail(app, mail, { alert: due.id, account_id: due.account_id });
  const now_ms = app.clock.now();
  if (outcome === 'done') {
    await settleNotice(app.db, due, claim, { state: 'sent', at: new Date(now_ms) });
    return 'done';
  }
  if (outcome === 'refused') {
    await settleNotice(app.db, due, claim, { state: 'failed', error: 'The mail server refuses its addresses.' });
    return 'done';
  }
  const wait_ms = Math.min(retry_first_ms * 2 ** Math.min(failures, 10), retry_max_ms);
  const error = 'The mail server did not take it.';
  await settleNotice(app.db, due, claim, { state: 'waiting', at: new Date(now_ms + wait_ms), error });
  return outcome === 'failed' ? 'failed' : 'done';
}

async function postNotice(app: NoticeParts, due: Due, reach: Reach, claim: Claim): Promise<Sent> {
  const { webhook, link } = reach;
  assert(webhook?.secret !== undefined, 'operators with a receiver have its secret');
  const { event, number, failures } = claim;
  const message = { id: `${due.id}-${number}`, event: `alert.${event}`, body: webhookBody(due, event, number, link) };
  const { delivered, status, error } = await postToOperators(
    app,
    { url: webhook.url, secret: webhook.secret },
    message,
  );
  const now_ms = app.clock.now();
  const reason = error ?? `It was answered ${status}.`;
  const delay_ms = app.catalog.current.settings.webhooks.retry_delays_ms[failures];
  if (!delivered) app.log.warn({ alert: due.id, status, error }, 'an alert could not be posted');
  const settlement: Settlement = delivered
    ? { state: 'sent', at: new Date(now_ms) }
    : delay_ms === undefined
      ? { state: 'failed', error: reason }
      : { state: 'waiting', at: new Date(now_ms + delay_ms), error: reason };
  await settleNotice(app.db, due, claim, settlement);
  return 'done';
}

type Settlement =
  | { state: 'sent'; at: Date }
  | { state: 'waiting'; at: Date; error: string }
  | { state: 'failed'; error: string };

/** Not if the claim is somebody else's by now. */
async function settleNotice(
  db: Queryable,
  { id, channel }: Due,
  { number, claims }: Claim,
  settlement: Settlement,
): Promise<void> {
  const { state } = settlement;
  await db.query(
    `update alert_notices set state = $5, sent_at = $6, retry_at = $7, error = left($8, 500), claims = 1,
        failures = failures + $9
      where alert_id = $1 and channel = $2 and number = $3 and state = 'claimed' and claims = $4`,
    [
      id,
      channel,
      number,
      claims,
      state,
      settlement.state === 'sent' ? settlement.at : null,
      settlement.state === 'waiting' ? settlement.at : null,
      settlement.state === 'sent' ? null : settlement.error,
      state === 'sent' ? 0 : 1,
    ],
  );
}
