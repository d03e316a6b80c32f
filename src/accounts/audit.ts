import type { Db, Queryable } from '../db/database.ts';
import { firstIdSince, newId } from '../lib/ids.ts';

/** An entry of the audit log: the action, its actor under their name of then, and the origin of the request. */
export type NewAuditEntry = {
  /** Undefined: it concerns the whole service, or a person rather than an account. */
  account_id?: string | undefined;
  /** Undefined: the command line, or what `by` names. */
  user?: { id: string; email: string } | undefined;
  /** The name of another service, if no person acted. */
  by?: string | undefined;
  /** The action, noun first: `key.create`. */
  action: string;
  /** The id of what it was done to. */
  subject?: string | undefined;
  /** Details of the change, never a secret: everybody who may read the account reads its log. */
  details?: Record<string, unknown> | undefined;
  address?: string | undefined;
  now: Date;
};

/** Writes down what somebody did; in the transaction that does it, where there is one. */
export async function audit(db: Queryable, entry: NewAuditEntry): Promise<void> {
  const { account_id, user, by, action, subject, details, address, now } = entry;
  await db.query(
    `insert into audit_entries (id, account_id, user_id, actor, action, subject, details, address, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      newId('audit', now.getTime()),
      account_id ?? null,
      user?.id ?? null,
      user?.email ?? by ?? 'command line',
      action,
      subject ?? null,
      details === undefined ? null : JSON.stringify(details),
      address ?? null,
      now,
    ],
  );
}

const view_noted_ms = 3_600_000;

/** Notes that an operator looks at an account that is not theirs, unless that was noted within the last hour. */
export async function noteView(
  db: Queryable,
  {
    account_id,
    user,
    address,
    now,
  }: { account_id: string; user: { id: string; email: string }; address: string; now: Date },
): Promise<void> {
  const rows = await db.query(
    `select from audit_entries where account_id = $1 and id >= $2 and user_id = $3 and action = 'account.view' limit 1`,
    [account_id, firstIdSince('audit', now.getTime() - view_noted_ms), user.id],
  );
  if (rows.length === 0)
    await audit(db, { account_id, user, action: 'account.view', subject: account_id, address, now });
}

export type AuditEntry = {
  id: string;
  account_id: string | null;
  user_id: string | null;
  actor: string;
  action: string;
  subject: string | null;
  details: Record<string, unknown> | null;
  address: string | null;
  created_at: Date;
};

export type AuditFilter = {
  limit: number;
  /** Only of this account; without it, of the whole service. */
  account_id?: string;
  action?: string;
  /** Only this entry. */
  id?: string;
  /** Entries older than this one. */
  after?: string;
  /** Inclusive. */
  from?: Date;
  /** Exclusive. */
  to?: Date;
};

/** Newest first: ids sort by time, so they are the cursor. */
export async function listAudit(
  db: Queryable,
  { limit, account_id, action, id, after, from, to }: AuditFilter,
): Promise<{ entries: AuditEntry[]; has_more: boolean }> {
  const rows = await db.query<AuditEntry>(
    `select id, account_id, user_id, actor, action, subject, details, address, created_at from audit_entries
      where ($1::text is null or account_id = $1) and ($2::text is null or action = $2) and ($3::text is null or id < $3)
        and ($4::text is null or id = $4) and ($6::text is null or id >= $6) and ($7::text is null or id < $7)
      order by id desc limit $5`,
    [account_id ?? null, action ?? null, after ?? null, id ?? null, limit + 1, idSince(from), idSince(to)],
  );
  return { entries: rows.slice(0, limit), has_more: rows.length > limit };
}

/** Somebody who read or deleted what was said in a chat call, or took contents of many along. */
export type ContentAccess = Pick<AuditEntry, 'actor' | 'action' | 'details' | 'address' | 'created_at'>;

/** Lists those who had to do with the content of a call, newest first: exports of the account, too. */
export async function contentAccesses(
  db: Queryable,
  { account_id, id, limit }: { account_id: string; id: string; limit: number },
): Promise<ContentAccess[]> {
  return db.query<ContentAccess>(
    `select actor, action, details, address, created_at from audit_entries
      where account_id = $1 and (subject = $2 and action in ('content.read', 'content.delete') or action = 'content.export')
      order by id desc limit $3`,
    [account_id, id, limit],
  );
}

function idSince(time: Date | undefined): string | null {
  return time ? firstIdSince('audit', time.getTime()) : null;
}

/** More than a spreadsheet can hold. */
const exported_max = 1_000_000;

/** The same, all of them up to a million: read a thousand at a time, since there may be more than fit into memory. */
export async function* exportAudit(db: Queryable, only: Omit<AuditFilter, 'limit'>): AsyncGenerator<AuditEntry> {
  let filter: AuditFilter = { limit: 1_000, ...only };
  for (let count = 0; count < exported_max; count += filter.limit) {
    const { entries, has_more } = await listAudit(db, filter);
    yield* entries;
    const last = entries.at(-1);
    if (!has_more || !last) return;
    filter = { ...filter, after: last.id };
  }
}

/** The person who booked a movement of money by hand. */
export type Booking = { audit_id: string; actor: string };

/** Returns, by the movement's ref, the entry that says who did it, for those that have one. */
export async function bookingsOf(
  db: Queryable,
  account_id: string,
  refs: readonly string[],
): Promise<Map<string, Booking>> {
  if (refs.length === 0) return new Map();
  const rows = await db.query<Booking & { ref: string }>(
    `select id as audit_id, actor, ref from audit_entries,
        lateral (select case when action = 'account.create' then 'initial ' || subject else details ->> 'ref' end as ref)
      where account_id = $1 and action in ('account.create', 'account.credit', 'billing.payment') and ref = any($2)`,
    [account_id, refs],
  );
  return new Map(rows.map(({ ref, ...booking }) => [ref, booking]));
}

const batch_max = 500;

/** Removes entries of the audit log that are older. Answers how many. */
export async function removeOldAudit(db: Db, before: Date, stopped?: AbortSignal): Promise<number> {
  for (let removed = 0; ;) {
    const count = await db.tx(async (tx) => {
      await tx.query(`select set_config('medley.audit_before', $1, true)`, [before.toISOString()]);
      const rows = await tx.query(
        `delete from audit_entries where id in (
           select id from audit_entries where id < $2 and created_at < $1 order by id limit ${batch_max}) returning id`,
        [before, firstIdSince('audit', before.getTime())],
      );
      return rows.length;
    });
    removed += count;
    if (count < batch_max || stopped?.aborted) return removed;
  }
}
