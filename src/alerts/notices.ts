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
import { operators_key, recipientsOf, type Recipients, type RecipientParts } from './recipients.ts';

/** The parts of the app that sending takes. */
export type NoticeParts = RecipientParts & {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Logger;
  readonly mailer: Mailer;
  readonly guard: Guard;
  readonly engine: Pick<Engine, 'wake'>;
};

type Channel = 'mail' | 'webhook';

/** A message about an alert that is due, by one channel. */
type DueNotice = AlertFacts & { channel: Channel };

/** A message that this process alone may send. */
type Claim = { number: number; event: NoticeEvent; claims: number; failures: number };

/**
 * Sends every message that is due. Several nodes may do so at once: each message has one sender. What quiet hours, a
 * limit per hour, or a server that is away hold up is sent by a later call, if it is news by then.
 */
export async function sendNotices(app: NoticeParts, audience: Audience, stopped?: AbortSignal): Promise<void> {
  const run: SendRun = { full: new Set(), failures: 0, surprises: 0 };
  for (let after: DueNotice | undefined, is_last = false; !is_last;) {
    const due = await dueNotices(app.db, audience, new Date(app.clock.now()), after);
    const ids = [...new Set(due.map(({ account_id }) => account_id ?? operators_key))];
    const recipients_of = await recipientsOf(app, audience, ids);
    for (const one of due) {
      if (stopped?.aborted) return;
      const recipients = recipients_of.get(one.account_id ?? operators_key);
      if (recipients) await sendIfPossible(app, run, one, recipients);
    }
    after = due.at(-1);
    is_last = due.length < due_max;
  }
}

/** Destinations that have had all messages of the hour, the number of failed mails, and that of unexpected errors. */
type SendRun = { full: Set<string>; failures: number; surprises: number };

async function sendIfPossible(app: NoticeParts, run: SendRun, due: DueNotice, recipients: Recipients): Promise<void> {
  const { channel, level, account_id } = due;
  const destination = `${channel} ${account_id ?? operators_key}`;
  if (run.full.has(destination) || !canSend(app, recipients, channel)) return;
  if (level < 2 && recipients.quiet && isQuiet(recipients.quiet, app.clock.now())) return;
  if (channel === 'mail' && run.failures >= failures_max) return;
  try {
    const outcome = await sendNotice(app, due, recipients);
    if (outcome === 'full') run.full.add(destination);
    if (outcome === 'failed') run.failures += 1;
  } catch (error) {
    if (++run.surprises === failures_max) throw error; // the database, or all of them
    app.log.error({ alert: due.id, channel, err: error }, 'a message about an alert could not be sent');
  }
}

function canSend({ mailer }: NoticeParts, { mail, webhook }: Recipients, channel: Channel): boolean {
  return channel === 'mail' ? mail.length > 0 && mailer.ready() : webhook !== undefined;
}

/** Messages in one read. Those that cannot be sent stay due. */
const due_max = 1_000;

/** Returns messages that are due after `after`: critical ones first, then those of the oldest alerts. */
async function dueNotices(
  db: Queryable,
  audience: Audience,
  now: Date,
  after: DueNotice | undefined,
): Promise<DueNotice[]> {
  return db.query<DueNotice>(
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

type SendOutcome = 'done' | 'full' | 'none' | 'failed';

async function sendNotice(app: NoticeParts, due: DueNotice, recipients: Recipients): Promise<SendOutcome> {
  if (due.channel === 'webhook' && due.account_id !== null) return queueDelivery(app, due, recipients);
  const claim = await claimNotice(app.db, due, recipients, new Date(app.clock.now()));
  if (typeof claim === 'string') return claim;
  return due.channel === 'mail' ? mailNotice(app, due, recipients, claim) : postNotice(app, due, recipients, claim);
}

async function claimNotice(
  db: Queryable,
  due: DueNotice,
  recipients: Recipients,
  now: Date,
): Promise<Claim | 'full' | 'none'> {
  const [row] = await db.query<{ answer: 'claimed' | 'full' | 'none' } & Claim>(
    'select * from claim_alert($1, $2, $3, $4)',
    [now, due.id, due.channel, recipients.per_hour_max],
  );
  assert(row, 'a claim is answered');
  return row.answer === 'claimed' ? row : row.answer;
}

/** Claims the message and writes its delivery in one transaction; it is then signed, sent and retried like any other. */
async function queueDelivery(app: NoticeParts, due: DueNotice, recipients: Recipients): Promise<SendOutcome> {
  const { account_id } = due;
  const { webhook, link } = recipients;
  assert(account_id !== null && webhook, 'an account with a receiver');
  const now_ms = app.clock.now();
  const outcome = await app.db.tx(async (tx): Promise<SendOutcome> => {
    const claim = await claimNotice(tx, due, recipients, new Date(now_ms));
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

async function mailNotice(
  app: NoticeParts,
  due: DueNotice,
  recipients: Recipients,
  claim: Claim,
): Promise<SendOutcome> {
  const { event, number, failures } = claim;
  const text = mailText(due, event, recipients.place, recipients.link);
  // With one id: mail programs show it once, if it is sent twice since a process died before it could note the first time.
  const mail = { ...alertMail(recipients.mail, text), id: `${due.id}-${number}-${event}` };
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

async function postNotice(
  app: NoticeParts,
  due: DueNotice,
  recipients: Recipients,
  claim: Claim,
): Promise<SendOutcome> {
  const { webhook, link } = recipients;
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

/** Writes the outcome of a message, unless another process has claimed it by now. */
async function settleNotice(
  db: Queryable,
  { id, channel }: DueNotice,
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
