import { openDatabase } from '../../src/db/database.ts';
import { openEngine } from '../../src/queue/queue.ts';

// A worker of its own process, to be killed: `worker-process.ts URL QUEUE SLOTS ENOUGH`. It tells its
// parent of each job that it begins, and then hangs; a job begun ENOUGH times before is done at once.
const [url = '', queue = '', slots = '1', enough = '10'] = process.argv.slice(2);

const fail = (details: object, message: string) => process.stderr.write(`${message} ${JSON.stringify(details)}\n`);
const db = openDatabase({ connection: { connectionString: url }, connections_max: 1 });
const engine = await openEngine({ db, log: { warn: fail, error: fail }, queues: [{ name: queue }] });

engine.work(queue, {
  slots: Number(slots),
  handler: async (job) => {
    process.send?.({ data: job.data, attempt: job.attempt });
    if (job.attempt < Number(enough)) await new Promise(() => {});
    return 'done';
  },
});
process.send?.('ready');
