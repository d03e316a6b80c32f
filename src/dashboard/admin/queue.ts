import type { Clock } from '../../lib/clock.ts';
import { audit } from '../../accounts/audit.ts';
import type { SessionCall } from '../../http/endpoint.ts';
import type { Queryable, Db } from '../../db/database.ts';
import type { NodeView, Engine } from '../../queue/queue.ts';
import { ApiError, invalidField } from '../../errors.ts';
import { exact } from '../../money/money.ts';
import { failManually } from '../../tasks/manual.ts';
import { findTask } from '../../tasks/list.ts';
import { readBodyFields } from '../body-fields.ts';
import type { OperatorChange } from '../operator-change.ts';
import { session_endpoint } from '../page.ts';
import type { AdminQueue } from '../views/admin.ts';

/** The job queue: its backlog, its nodes, and tasks that need an operator. */

/** A node says so every 2 s. */
const silent_max_ms = 10_000;

export function isAlive({ silent_ms }: NodeView): boolean {
  return silent_ms < silent_max_ms;
}

/** Jobs that wait and jobs that run, by their queue; the processes; jobs in trouble; the limits of this process. */
export const admin_queue = session_endpoint('GET', '/dash/admin/queue', 'operator', async (app) => {
  const [queues, nodes, troubled] = await Promise.all([
    app.engine.backlog(),
    app.engine.nodes(),
    app.engine.troubledJobs(),
  ]);
  const view: AdminQueue = {
    queues,
    nodes: nodes.map((node) => {
      const { id, host, pid, role, version, started_at, silent_ms, running, is_paused } = node;
      return {
        id,
        name: `${host} ${pid}`,
        role,
        version,
        started_at: started_at.toISOString(),
        silent_s: Math.round(silent_ms / 1000),
        is_alive: isAlive(node),
        is_paused,
        running: Object.values(running).reduce((sum, count) => sum + count, 0),
      };
    }),
    troubled: troubled.map(({ started_at, due_at, ...job }) => {
      return { ...job, started_at: started_at?.toISOString() ?? null, due_at: due_at.toISOString() };
    }),
    limits: Object.values(app.limits).map(({ state }) => state),
  };
  return { status: 200, body: view };
});

/** Changes something of the engine and writes down who did, in one transaction. False if there was nothing to change. */
async function change(
  { db, clock, engine }: { db: Db; clock: Clock; engine: Engine },
  call: SessionCall,
  audit_entry: OperatorChange,
  work: (tx: Queryable) => Promise<boolean>,
): Promise<boolean> {
  const done = await db.tx(async (tx) => {
    const changed = await work(tx);
    const now = new Date(clock.now());
    if (changed) await audit(tx, { ...audit_entry, user: call.person.user, address: call.address, now });
    return changed;
  });
  if (done) engine.tellNodes();
  return done;
}

/** The process takes no more jobs, or goes on; what it has in hand ends as ever. */
export const admin_pause_node = session_endpoint(
  'POST',
  '/dash/admin/nodes/{id}/pause',
  'operator',
  async (app, call) => {
    const { id = '' } = call.params;
    const paused = call.body?.['paused'];
    if (typeof paused !== 'boolean') throw invalidField('paused', 'paused must be true or false.');
    const audit_entry = { action: paused ? 'worker.pause' : 'worker.resume', subject: id };
    const is_there = await change(app, call, audit_entry, (tx) => app.engine.pause(tx, id, paused));
    if (!is_there) throw new ApiError('not_found', 'This process no longer exists.');
    return { status: 200, body: { ok: true } };
  },
);

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Starts a job anew, whoever holds it. */
export const admin_requeue = session_endpoint(
  'POST',
  '/dash/admin/jobs/{id}/requeue',
  'operator',
  async (app, call) => {
    const { id = '' } = call.params;
    const audit_entry = { action: 'job.requeue', subject: id };
    const is_there = uuid.test(id) && (await change(app, call, audit_entry, (tx) => app.engine.requeue(tx, id)));
    if (!is_there) throw new ApiError('not_found', 'This job no longer exists: it has ended, or was restarted.');
    return { status: 200, body: { ok: true } };
  },
);

/** Ends a task that hangs: it fails and is refunded, as by `medley task fail`. */
export const admin_fail_task = session_endpoint(
  'POST',
  '/dash/admin/tasks/{id}/fail',
  'operator',
  async (app, call) => {
    const reason = readBodyFields(call.body).text('reason', 500);
    const { id = '' } = call.params;
    const task = await findTask(app.db, id);
    if (!task) throw new ApiError('not_found', 'There is no such task.');
    if ((await failManually(app, task, reason)) === 'final') {
      throw new ApiError('conflict', `${id} has ended already.`, { code: 'conflict' });
    }
    await audit(app.db, {
      account_id: task.account_id,
      user: call.person.user,
      action: 'task.fail',
      subject: id,
      details: { reason, released: exact(task.estimate), currency: task.currency },
      address: call.address,
      now: new Date(app.clock.now()),
    });
    return { status: 200, body: { ok: true } };
  },
  { needs_proof: true },
);
