import type { App } from './app.ts';
import { pollTask, startTask } from './tasks/step.ts';
import { sweepTasks } from './tasks/sweep.ts';

/** Jobs that wait for somebody else share a node freely; the database sets the pace before this does. */
const slots = 64;

const sweep_every_ms = 10_000;

/** Every job of the service in one list. */
export async function startWorker(app: App): Promise<void> {
  app.engine.work('task.start', { slots, handler: (job) => startTask(app, job) });
  app.engine.work('task.poll', { slots, handler: (job) => pollTask(app, job) });
  await app.engine.schedule('tasks.sweep', sweep_every_ms, async () => {
    await sweepTasks(app);
  });
}
