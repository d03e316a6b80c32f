/** Every place: those of a task's life in their order, then those of jobs, files, webhooks and the sweep. */
export const failpoints = [
  'task.created',
  'task.opened',
  'task.submitted',
  'task.refused',
  'task.routed',
  'task.claimed',
  'task.accepted',
  'task.polled',
  'task.expired',
  'task.dropped',
  'task.copying',
  'task.stored',
  'task.finishing',
  'task.finished',
  'task.canceling',
  'task.abandoned',
  'job.fetched',
  'job.settling',
  'job.settled',
  'file.written',
  'upload.part',
  'upload.stored',
  'delivery.begun',
  'delivery.sent',
  'delivery.ended',
  'sweep.resending',
  'sweep.ending',
  'sweep.removing',
  'sweep.deleting',
  'response.claimed',
  'response.sent',
  'response.ended',
  'batch.sent',
  'batch.answered',
  'batch.filed',
] as const;

export type Failpoint = (typeof failpoints)[number];

/**
 * Named places where a test can make the process die or stumble, to prove that nothing is lost there.
 * Nothing is armed unless MEDLEY_FAILPOINTS says so at the start, or a test does.
 */
const actions = ['kill', 'stop', 'throw', 'hang'] as const;
type Action = (typeof actions)[number];

const armed = new Map<Failpoint, Action | (() => Promise<void> | void)>();

/** Arms points from a text such as `task.submitted=kill,task.stored=throw`. Throws on anything else. */
export function armFailpoints(text: string): void {
  for (const part of text.split(',')) {
    const [word, action_word] = part.split('=');
    const name = failpoints.find((each) => each === word);
    const action = actions.find((each) => each === action_word);
    if (!name || !action) {
      throw new Error(
        `MEDLEY_FAILPOINTS: "${part}" is not NAME=${actions.join('|')} with one of ${failpoints.join(', ')}.`,
      );
    }
    armed.set(name, action);
  }
}

/** Sets the work of this process at a failpoint, or removes it. */
export function atFailpoint(name: Failpoint, work?: () => Promise<void> | void): void {
  if (work) armed.set(name, work);
  else armed.delete(name);
}

/** Does nothing unless `name` is armed; then what it is armed with. `stop` only once. */
export async function failpoint(name: Failpoint): Promise<void> {
  if (armed.size === 0) return;
  const action = armed.get(name);
  if (typeof action === 'function') return action();
  if (action === 'kill') process.kill(process.pid, 'SIGKILL');
  if (action === 'throw') {
    process.stderr.write(`failpoint ${name}\n`); // who catches it may have nothing to say
    throw new Error(`failpoint ${name}`);
  }
  if (action === 'stop') {
    armed.delete(name);
    process.kill(process.pid, 'SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, 1)); // the signal arrives before the next turn
  }
  if (action === 'kill' || action === 'hang') await new Promise(() => setInterval(() => undefined, 1_000));
}
