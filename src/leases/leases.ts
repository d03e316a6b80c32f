import type { Queryable } from '../db/database.ts';

/** Ends a lease before its time, without the lock of its resource: who has that may still read the lease. */
export async function endLease(
  db: Queryable,
  { account_id, resource, node_id }: { account_id: string; resource: string; node_id: string },
): Promise<void> {
  await db.query('delete from leases where account_id = $1 and resource = $2 and node_id = $3', [
    account_id,
    resource,
    node_id,
  ]);
}

/** Counts the leases of all nodes. */
export async function countLeases(db: Queryable): Promise<number> {
  const rows = await db.query<{ count: bigint }>('select count(*) as count from leases');
  return Number(rows[0]?.count ?? 0);
}

/** Ends all leases of a node that stops. */
export async function endLeases(db: Queryable, node_id: string): Promise<void> {
  await db.query('select end_leases($1)', [node_id]);
}

/**
 * Removes expired leases, recalls, and nodes without leases. Locked leases are in use and are skipped: waiting for them
 * would lock rows in another order than others do.
 */
export async function removeEndedLeases(db: Queryable): Promise<void> {
  const remove = (is_expired: string) =>
    db.query(`delete from leases where ctid = any (array(
      select l.ctid from leases l where ${is_expired} for update skip locked))`);
  await remove(`exists (select from lessees n where n.node_id = l.node_id and n.seen_at < now() - interval '10 min')`);
  await remove(`l.ends_at < now() - interval '2 min'
    and not exists (select from lessees n where n.node_id = l.node_id and n.seen_at < now() - interval '8 s')`);
  await db.query(`delete from lessees where seen_at < now() - interval '1 hour'`);
}
