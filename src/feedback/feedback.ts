import { conditionsOf } from '../db/conditions.ts';
import type { Db, Queryable } from '../db/database.ts';
import type { GrowingTable } from '../db/tables.ts';
import { newId } from '../lib/ids.ts';
import type { Bind } from '../money/groups.ts';
import { keyConditions, type KeysOfProjects } from '../money/key-budgets.ts';
import type { EndedRange } from '../tasks/speed.ts';

/** For backups: a score that was changed since is as it is when the backup comes to it. */
export const growing_feedback: GrowingTable = {
  name: 'public.feedback',
  keys: ['id'],
  is_later: 'r.created_at > m.at',
};

/** A score that somebody gave to a chat call or a task. */
export type Feedback = {
  id: string;
  /** The id of the call or the task. */
  reference_id: string;
  /** The metric. */
  name: string;
  /** Empty where nobody was named. */
  end_user: string;
  /** From -1 to 1. */
  score: number;
  comment: string | null;
  tags: string[];
  metadata: Record<string, string>;
  created_at: Date;
  updated_at: Date;
};

export type NewFeedback = Omit<Feedback, 'id' | 'created_at' | 'updated_at'> & {
  account_id: string;
  /** Null: a person in the dashboard. */
  key_id: string | null;
  /** Start of the call or the task. */
  referred_at: Date;
};

/** The metric that is meant where none is named. */
export const default_metric = 'rating';

/** Scores of one call or task, of all metrics and end users. */
export const scores_max = 100;

const columns = 'id, reference_id, name, end_user, score, comment, tags, metadata, created_at, updated_at';

/**
 * Stores a score, in the place of one of the same call, metric and end user. Undefined if the call has `scores_max`
 * others. Scores of one call are stored one after another, so that they are counted exactly.
 */
export async function giveFeedback(db: Db, feedback: NewFeedback, now: Date): Promise<Feedback | undefined> {
  const { account_id, reference_id, name, end_user, score, comment, tags, metadata, key_id, referred_at } = feedback;
  const id = newId('feedback', now.getTime());
  const values = [account_id, id, reference_id, name, end_user, score, comment, tags, JSON.stringify(metadata), key_id];
  const rows = await db.tx(async (tx) => {
    await tx.query(`select pg_advisory_xact_lock(hashtextextended('feedback ' || $1, 0))`, [reference_id]);
    return tx.query<Feedback>(
      `insert into feedback (account_id, id, reference_id, name, end_user, score, comment, tags, metadata, key_id, referred_at,
          created_at, updated_at)
       select $1, $2, $3, $4, $5, $6, $7, $8::text[], $9::jsonb, $10, $11, $12, $12
        where (select count(*) from feedback
                where account_id = $1 and reference_id = $3 and (name, end_user) <> ($4::text, $5::text)) < ${scores_max}
       on conflict (account_id, reference_id, name, end_user) do update set score = excluded.score,
         comment = excluded.comment, tags = excluded.tags, metadata = excluded.metadata, key_id = excluded.key_id,
         updated_at = excluded.updated_at
       returning ${columns}`,
      [...values, referred_at, now],
    );
  });
  return rows[0];
}

/**
 * The scores that a reader sees: those of what some keys made. `keyOf` returns SQL that selects the `key_id` of the call or
 * task with an id, of an account; both are SQL, too.
 */
export type FeedbackSight = { keys: KeysOfProjects; keyOf(account: string, id: string): string };

function sightConditions({ keys, keyOf }: FeedbackSight) {
  const work = `(${keyOf('$1', 'feedback.reference_id')}) work`;
  return keyConditions(keys).map(
    ([condition, value]) => [`exists (select from ${work} where ${condition})`, value] as const,
  );
}

export type FeedbackFilter = {
  account_id: string;
  limit: number;
  /** Undefined: all of the account. */
  sight?: FeedbackSight | undefined;
  /** Further down the list than this one. */
  after?: string | undefined;
  /** Further up the list. */
  before?: string | undefined;
  reference_id?: string | undefined;
  name?: string | undefined;
  end_user?: string | undefined;
};

/** Feedback of an account, newest first: ids sort by time, so they are the cursor. */
export async function listFeedback(
  db: Queryable,
  { account_id, limit, sight, after, before, reference_id, name, end_user }: FeedbackFilter,
): Promise<{ feedback: Feedback[]; has_more: boolean }> {
  const { text, values } = conditionsOf([
    ['account_id = ?', account_id],
    ['id < ?', after],
    ['id > ?', before],
    ['reference_id = ?', reference_id],
    ['name = ?', name],
    ['end_user = ?', end_user],
    ...(sight ? sightConditions(sight) : []),
  ]);
  const rows = await db.query<Feedback>(
    `select ${columns} from feedback where ${text}
      order by id ${before === undefined ? 'desc' : 'asc'} limit $${values.length + 1}`,
    [...values, limit + 1],
  );
  const page = rows.slice(0, limit);
  return { feedback: before === undefined ? page : page.toReversed(), has_more: rows.length > limit };
}

const export_page = 500;

/** All feedback of an account, newest first. */
export async function* allFeedback(db: Queryable, account_id: string): AsyncGenerator<Feedback> {
  for (let after: string | undefined; ;) {
    const { feedback, has_more } = await listFeedback(db, { account_id, limit: export_page, after });
    yield* feedback;
    if (!has_more) return;
    after = feedback.at(-1)?.id;
  }
}

/** Removes one. False if the account has none with this id, or it is out of sight. */
export async function removeFeedback(
  db: Queryable,
  { account_id, id, sight }: { account_id: string; id: string; sight?: FeedbackSight },
): Promise<boolean> {
  const { text, values } = conditionsOf([
    ['account_id = ?', account_id],
    ['id = ?', id],
    ...(sight ? sightConditions(sight) : []),
  ]);
  return (await db.query(`delete from feedback where ${text} returning id`, values)).length > 0;
}

const batch_max = 500;

/** Removes feedback on chat calls, and on tasks, that began before these times: their records are gone, too. */
export async function removeOldFeedback(
  db: Queryable,
  before: { calls: Date; tasks: Date },
  stopped?: AbortSignal,
): Promise<void> {
  for (const [prefix, at] of [
    ['req', before.calls],
    ['task', before.tasks],
  ] as const) {
    for (let removed = batch_max; removed === batch_max && !stopped?.aborted;) {
      const rows = await db.query(
        `delete from feedback where (account_id, id) in (
           select account_id, id from feedback where referred_at < $1 and starts_with(reference_id, $2)
            order by referred_at limit ${batch_max}) returning id`,
        [at, `${prefix}_`],
      );
      removed = rows.length;
    }
  }
}

/**
 * Returns a select of the sums of a metric's scores, `score` and `scores`, by the call or task that they are of, for a
 * report over the range.
 */
export function scoresIn({ account_id, from, to }: EndedRange, metric: string, bind: Bind): string {
  const place = account_id === undefined ? '' : `account_id = ${bind(account_id)} and `;
  return `select account_id, reference_id, sum(score) as score, count(*) as scores from feedback
     where ${place}referred_at >= ${bind(from)} and referred_at < ${bind(to)} and name = ${bind(metric)}
     group by account_id, reference_id`;
}
