import type { App } from './app.ts';
import { pollTask } from './tasks/poll.ts';
import { startTask } from './tasks/start.ts';
import { removeOld, rescueTasks } from './tasks/sweep.ts';

/** Jobs that wait for somebody else share a node freely; the database sets the pace before this does. */
const slots = 64;

const rescue_every_ms = 10_000;
const remove_every_ms = 60_000;

/** Every job of the service in one list. */
export async function startWorker(app: App): Promise<void> {
  app.engine.work('task.start', { slots, handler: (job) => startTask(app, job) });
  app.engine.work('task.poll', { slots, handler: (job) => pollTask(app, job) });
  await app.engine.schedule('tasks.sweep', rescue_every_ms, async () => {
    await rescueTasks(app);
  });
  await app.engine.schedule('tasks.removal', remove_every_ms, async (stopped) => {
    await removeOld(app, stopped);
  });
}
