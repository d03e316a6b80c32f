import type { Queryable } from '../db/database.ts';

/** Ends all leases of a node that stops. */
export async function endLeases(db: Queryable, node_id: string): Promise<void> {
  await db.query('select end_leases($1)', [node_id]);
}

/** Removes leases that count no longer: of nodes that died, and recalls. */
export async function removeEndedLeases(db: Queryable): Promise<void> {
  await db.query(
    `delete from leases where ends_at < now() - case when in_use > 0 then interval '10 min' else interval '2 min' end`,
  );
}
