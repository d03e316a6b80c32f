import type { Queryable } from '../db/database.ts';
import type { JobQueue } from './pg-boss.ts';

/** Facts that a process reports about itself. */
export type NodeFacts = { id: string; host: string; pid: number; role: string; version: string };

/** A process of the service, as it was when it was last heard of; ages by the database's clock. */
export type NodeView = NodeFacts & {
  started_at: Date;
  /** Time since its last sign of life. */
  silent_ms: number;
  /** Jobs in hand, by their queue. */
  running: Record<string, number>;
  is_paused: boolean;
};

/** Nobody looks for what has been silent for longer. */
const forgotten_after = '1 day';

/** Says that this node is alive; answers whether an operator has paused it. */
export async function sayAlive(
  job_queue: JobQueue,
  node: NodeFacts,
  running: Record<string, number>,
): Promise<boolean> {
  const rows = await job_queue.query<{ is_paused: boolean }>(
    `insert into nodes (id, host, pid, role, version, started_at, seen_at, running)
     values ($1, $2, $3, $4, $5, now(), now(), $6)
     on conflict (id) do update set seen_at = now(), running = $6 returning is_paused`,
    [node.id, node.host, node.pid, node.role, node.version, JSON.stringify(running)],
  );
  return rows[0]?.is_paused ?? false;
}

export async function removeNodes(job_queue: JobQueue, id: string): Promise<void> {
  await job_queue.query(`delete from nodes where id = $1 or seen_at < now() - $2::interval`, [id, forgotten_after]);
}

/** All nodes, the newest first; those that are silent for a day are not there. */
export async function listNodes(db: Queryable): Promise<NodeView[]> {
  return db.query<NodeView>(
    `select id, host, pid, role, version, started_at, running, is_paused,
            (extract(epoch from now() - seen_at) * 1000)::float8 as silent_ms
       from nodes where seen_at > now() - $1::interval order by started_at desc, id limit 200`,
    [forgotten_after],
  );
}

/** Pauses or resumes a node: a paused one takes no new jobs. Returns false if there is no such node. */
export async function setPaused(db: Queryable, id: string, paused: boolean): Promise<boolean> {
  const rows = await db.query('update nodes set is_paused = $2 where id = $1 returning id', [id, paused]);
  return rows.length === 1;
}
