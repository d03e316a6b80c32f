import { isRecord } from '../../api.ts';

/** Search parameters of the page: the model, others beside it, a task whose input is used, and the last run. */
export type PlaygroundSearch = {
  model?: string | undefined;
  /** Models beside it, with commas. */
  beside?: string | undefined;
  /** A task whose input to begin with. */
  task?: string | undefined;
  /** The runs that are looked at, with commas: those of the model and of the models beside it, in their order. */
  run?: string | undefined;
  /** The conversation that is open. */
  chat?: string | undefined;
  /** A stored chat call to begin with. */
  call?: string | undefined;
  /** The saved prompt that is open. */
  prompt?: string | undefined;
  /** The first input, from a link that somebody was sent. */
  input?: Record<string, unknown> | undefined;
};

/** Values of an address may be anything. */
export function readPlaygroundSearch(search: Record<string, unknown>): PlaygroundSearch {
  const text = (name: string) => (typeof search[name] === 'string' && search[name] !== '' ? search[name] : undefined);
  const { input } = search;
  return {
    model: text('model'),
    beside: text('beside'),
    task: text('task'),
    run: text('run'),
    chat: text('chat'),
    call: text('call'),
    prompt: text('prompt'),
    input: isRecord(input) ? input : undefined,
  };
}

/** The input of a task, to begin with. */
export function inputOf({ input }: { input: string }): Record<string, unknown> | undefined {
  try {
    const read: unknown = JSON.parse(input);
    return isRecord(read) ? read : undefined;
  } catch {
    return undefined;
  }
}
