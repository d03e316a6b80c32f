import type { Logger } from 'pino';
import { findAccount, type Account } from '../accounts/accounts.ts';
import { keyNames } from '../accounts/key-list.ts';
import type { Mailer } from '../accounts/mailer.ts';
import { nameInMail, spendMail, type SpendText } from '../accounts/mails.ts';
import { addressesOf, membershipIn } from '../accounts/members.ts';
import { projectNames } from '../accounts/projects.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { isPair, pairName, type UsageGroup } from '../money/groups.ts';
import { costView, type Money } from '../money/money.ts';
import { compareGroups, costOf } from '../money/usage-groups.ts';
import { usageOf } from '../money/usage.ts';
import { failures_max, sendMail, type Outcome } from './notices.ts';
import {
  advanceSpendMail,
  beginningOfPeriod,
  dueSpendMails,
  endOfPeriod,
  removeSpendMail,
  type SpendMail,
} from './spend-mails.ts';

/** The parts of the app that these mails need. */
type Parts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Logger;
  readonly mailer: Mailer;
  base_url(): string;
};

const hour_ms = 3_600_000;

/** Calls that ran at the end of a period are charged by then. */
const late_ms = hour_ms;

/** A mail that could not be sent by then is given up: the page has the same. */
const mail_within_ms = 3 * 24 * hour_ms;

/**
 * Mails the spend of periods that are over, of several the last. A mail that a server does not take waits for the next
 * run, and delays no other.
 */
export async function mailSpend(app: Parts, stopped: AbortSignal): Promise<void> {
  if (!app.mailer.ready()) return;
  const now = new Date(app.clock.now() - late_ms);
  let failures = 0;
  for (let after: SpendMail | undefined, is_last = false; !is_last;) {
    const due = await dueSpendMails(app.db, now, after);
    for (const mail of due) {
      if (stopped.aborted) return;
      const outcome = await mailOne(app, mail, now);
      if (outcome === 'failed' && ++failures === failures_max) return;
    }
    after = due.at(-1);
    is_last = due.length === 0;
  }
}

async function mailOne(app: Parts, mail: SpendMail, now: Date): Promise<Outcome> {
  const { account_id, user_id, every } = mail;
  const account = await findAccount(app.db, account_id);
  const membership = await membershipIn(app.db, user_id, account_id);
  if (!account || !membership || membership.projects) {
    await removeSpendMail(app.db, mail);
    return 'done';
  }
  const members = await addressesOf(app.db, [account_id]);
  const to = members.filter((member) => member.user_id === user_id).map(({ email }) => email);
  const end = beginningOfPeriod(every, endOfPeriod(every, now)); // of the last period that is over
  const text = await spendText(app, account, { ...mail, ends_at: end });
  const id = `spend-${account_id}-${user_id}-${end.getTime()}`; // who is mailed it twice sees one mail
  const outcome = await sendMail(app, { ...spendMail(to, text), id }, { account_id, every });
  const is_late = now.getTime() - mail.ends_at.getTime() > mail_within_ms;
  if (outcome === 'done' || outcome === 'refused' || is_late) await advanceSpendMail(app.db, mail, now);
  return outcome;
}

/** Groups of a mail; the page has all of them. */
const lines_max = 20;

async function spendText(app: Parts, account: Account, { every, grouped_by, ends_at }: SpendMail): Promise<SpendText> {
  const { id: account_id, currency } = account;
  const begins_at = beginningOfPeriod(every, ends_at);
  const before = { from: beginningOfPeriod(every, begins_at), to: begins_at };
  const usage = (range: { from: Date; to: Date }, group_by: UsageGroup[]) =>
    usageOf(app.db, { account_id, ...range, group_by });
  const range = { from: begins_at, to: ends_at };
  // A charge with several tags counts in each, so the totals are asked for by themselves.
  const [total, total_before] = [costOf(await usage(range, [])), costOf(await usage(before, []))];
  const groups = compareGroups(await usage(range, [grouped_by]), await usage(before, [grouped_by]), grouped_by);
  const shown = groups.slice(0, lines_max);
  const names = await namesOf(app.db, account_id, grouped_by, shown);
  // Ids of models are the operator's; callers choose the others.
  const nameOf = (id: string) => (grouped_by === 'model' ? id : nameInMail(names.get(id) ?? id));
  const amount = (value: Money) => `${costView(value, currency).amount} ${currency}`;
  const lines = shown.map(({ id, used, used_before }) => ({
    name: id === '' ? `no ${phrase(grouped_by)}` : nameOf(id),
    cost: amount(costOf(used)),
    cost_before: amount(costOf(used_before ?? [])),
  }));
  const last_day = new Date(ends_at.getTime() - 1);
  const search = new URLSearchParams({ period: 'custom', from: dayOf(begins_at), to: dayOf(last_day) });
  search.set('group', grouped_by === 'modality' ? 'kind' : grouped_by);
  return {
    place: account.name,
    days: every === 'day' ? dayOf(begins_at) : `${dayOf(begins_at)} to ${dayOf(last_day)}`,
    every,
    total: amount(total),
    total_before: amount(total_before),
    grouped_by: phrase(grouped_by),
    lines,
    more: Math.max(0, groups.length - lines_max),
    link: `${app.base_url()}/usage?${search}`,
  };
}

/** Names of groups that have ids, too. */
async function namesOf(
  db: Db,
  account_id: string,
  group: UsageGroup,
  groups: readonly { id: string }[],
): Promise<Map<string, string>> {
  if (group === 'project') return projectNames(db, account_id);
  if (group !== 'key') return new Map();
  return keyNames(
    db,
    account_id,
    groups.map(({ id }) => id),
  );
}

function phrase(group: UsageGroup): string {
  if (isPair(group)) return pairName(group);
  return group === 'modality' ? 'kind' : group;
}

function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10);
}
