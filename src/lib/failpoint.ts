/**
 * Named places where a test can make the process die or stumble, to prove that nothing is lost there.
 * Nothing is armed unless MEDLEY_FAILPOINTS says so at the start.
 */
const actions = ['kill', 'throw', 'hang'] as const;
type Action = (typeof actions)[number];

const armed = new Map<string, Action>();

/** Arms points from a text such as `task.submitted=kill,task.stored=throw`. Throws on anything else. */
export function armFailpoints(text: string): void {
  for (const part of text.split(',')) {
    const [name = '', word] = part.split('=');
    const action = actions.find((known) => known === word);
    if (!action) throw new Error(`MEDLEY_FAILPOINTS: "${part}" is not NAME=${actions.join('|')}.`);
    armed.set(name, action);
  }
}

/** Does nothing unless `name` is armed; then what it is armed with. */
export async function failpoint(name: string): Promise<void> {
  if (armed.size === 0) return;
  const action = armed.get(name);
  if (action === 'kill') process.kill(process.pid, 'SIGKILL');
  if (action === 'throw') throw new Error(`failpoint ${name}`);
  if (action === 'kill' || action === 'hang') await new Promise(() => setInterval(() => undefined, 1_000));
}
