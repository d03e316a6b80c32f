import type { Queryable } from '../db/database.ts';

/** Ends all leases of a node that stops. */
export async function endLeases(db: Queryable, node_id: string): Promise<void> {
  await db.query('select end_leases($1)', [node_id]);
}

/** Removes what is left of leases that ended long ago, of nodes that died. */
export async function removeEndedLeases(db: Queryable): Promise<void> {
  await db.query(`delete from leases where ends_at < now() - interval '1 min'`);
}
