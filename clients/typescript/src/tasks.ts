import { Cursor, type Page } from './cursor.ts';
import { ApiError, MedleyError } from './errors.ts';
import type { InputOf, ModelId } from './inputs.ts';
import { pause, readJson, segment, type CallOptions, type Http } from './http.ts';
import type { GenerateRequest, Links, ListTasksQuery, OutputItem, Task } from './types.ts';

/** A task that has ended well. */
export type SucceededTask = Task & { status: 'succeeded'; error: null };

export type CreateOptions = CallOptions & {
  /** Seconds that the service waits for the end of the task before it answers, at most 300; 0 unless set. */
  wait?: number | undefined;
  /** Receives the final task: `verifyWebhook`. */
  webhook_url?: string | undefined;
  /** At most 16 pairs, echoed in the task. */
  metadata?: Record<string, string> | undefined;
  /** The same key and request are the same task for 24 hours. Unless set, each call has a new one. */
  idempotency_key?: string | undefined;
};

export type WaitOptions = CallOptions & {
  /** The most seconds to wait for the end; as long as the task takes unless set. */
  wait?: number | undefined;
  /** Gets the task each time that it was read, the final one too. */
  on_progress?: ((task: Task) => void) | undefined;
  /** Cancels the task after an abort, if its provider does not bill it anyway. Without it, the task goes on. */
  cancel_on_abort?: boolean | undefined;
};

export type GenerateOptions = WaitOptions & CreateOptions;

/** The task has ended as `failed`. It costs nothing. The message is that of `task.error`. */
export class TaskFailedError extends MedleyError {
  override name = 'TaskFailedError';
  readonly task: Task;
  /** Such as `content_policy_violation`. */
  readonly type: string;

  constructor(task: Task) {
    super(task.error?.message ?? 'The task failed.');
    this.task = task;
    this.task_id = task.id;
    this.type = task.error?.type ?? 'internal_error';
  }
}

/** The time of `wait` is over. The task goes on. */
export class WaitTimeoutError extends MedleyError {
  override name = 'WaitTimeoutError';
  readonly task: Task;

  constructor(task: Task, wait_s: number) {
    super(`The task ${task.id} is still ${task.status} after ${wait_s} s.`);
    this.task = task;
    this.task_id = task.id;
  }
}

const poll_ms = { first: 500, most: 5_000, growth: 1.5 };

/** Balancers cut what is silent for a minute. */
const create_wait_s_max = 50;

/** A task goes on while the service starts again, so polls are more patient than other requests. */
const poll_retries_min = 8;

export class Tasks {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Creates a task and returns it as it is then. Throws if it is not accepted; a task that fails is returned. */
  create<Id extends ModelId>(model: Id, input: InputOf<Id>, options: CreateOptions = {}): Promise<Task> {
    return this.#create(model, input, options, false);
  }

  async get(id: string, options: CallOptions = {}): Promise<Task> {
    const request = { method: 'GET', path: `/v1/tasks/${segment(id)}`, is_repeatable: true } as const;
    return this.#http.send(request, options, readJson<Task>);
  }

  /** Lists tasks, newest first. */
  list(query: Omit<ListTasksQuery, 'before' | 'after_id' | 'before_id'> = {}, options: CallOptions = {}): Cursor<Task> {
    const load = (after: string | undefined) =>
      this.#http.send(
        { method: 'GET', path: '/v1/tasks', query: { ...query, after }, is_repeatable: true },
        options,
        readJson<Page<Task>>,
      );
    return new Cursor(load, query.after);
  }

  /** Cancels a task, and returns it. Throws a 409 if it has ended, or if its provider bills it anyway. */
  async cancel(id: string, options: CallOptions = {}): Promise<Task> {
    const request = { method: 'POST', path: `/v1/tasks/${segment(id)}/cancel`, is_repeatable: true } as const;
    try {
      return await this.#http.send(request, options, readJson<Task>);
    } catch (error) {
      // The answer to the first attempt may have been lost: what is canceled already is no conflict.
      if (!(error instanceof ApiError) || error.status !== 409) throw error;
      const task = await this.get(id, options);
      if (task.error?.type !== 'canceled') throw error;
      return task;
    }
  }

  /** Returns the outputs with fresh links. */
  async links(id: string, options: CallOptions = {}): Promise<OutputItem[]> {
    const request = { method: 'POST', path: `/v1/tasks/${segment(id)}/links`, is_repeatable: true } as const;
    return (await this.#http.send(request, options, readJson<Links>)).data;
  }

  /** Removes the files of a task. The task stays. */
  async deleteOutput(id: string, options: CallOptions = {}): Promise<void> {
    const request = { method: 'DELETE', path: `/v1/tasks/${segment(id)}/output`, is_repeatable: true } as const;
    await this.#http.send(request, options, (response) => response.arrayBuffer());
  }

  /** Returns the final task, whether it succeeded or failed. Throws WaitTimeoutError after `wait` seconds. */
  async wait(id: string, options: WaitOptions = {}): Promise<Task> {
    const deadline = new Deadline(options.wait);
    return this.#cancelingOnAbort(id, options, async () => {
      const task = await this.get(id, patient(options));
      return this.#untilFinal(task, deadline, options);
    });
  }

  /** Creates a task and returns it when it has succeeded. */
  async generate<Id extends ModelId>(model: Id, input: InputOf<Id>, options: GenerateOptions): Promise<SucceededTask> {
    const deadline = new Deadline(options.wait);
    const { on_progress, cancel_on_abort = false } = options;
    // Whoever looks at the progress, or may cancel, needs the id of the task at once.
    const wait = on_progress || cancel_on_abort ? 0 : Math.floor(Math.min(create_wait_s_max, deadline.left_ms / 1000));
    const created = await this.#create(model, input, { ...options, wait }, cancel_on_abort);
    const task = await this.#cancelingOnAbort(created.id, options, () => this.#untilFinal(created, deadline, options));
    if (isSucceeded(task)) return task;
    throw new TaskFailedError(task);
  }

  #create(model: string, input: object, options: CreateOptions, outlives_abort: boolean): Promise<Task> {
    const { wait = 0, webhook_url, metadata, idempotency_key = randomKey() } = options;
    if (!Number.isInteger(wait) || wait < 0) throw new MedleyError('wait must be a whole number of seconds from 0.');
    const call: GenerateRequest = {
      model,
      input: { ...input },
      ...(webhook_url !== undefined && { webhook_url }),
      ...(metadata !== undefined && { metadata }),
    };
    const text = JSON.stringify(call); // once: another body with the same key is refused
    const request = {
      method: 'POST',
      path: '/v1/generate',
      query: { wait: wait > 0 ? Math.min(wait, 300) : undefined },
      headers: { 'content-type': 'application/json', 'idempotency-key': idempotency_key },
      body: () => text,
      is_repeatable: true,
      wait_s: Math.min(wait, 300),
      outlives_abort,
    } as const;
    return this.#http.send(request, options, readJson<Task>);
  }

  async #untilFinal(start: Task, deadline: Deadline, options: WaitOptions): Promise<Task> {
    let task = start;
    for (let pause_ms = poll_ms.first; ; pause_ms = Math.min(poll_ms.most, pause_ms * poll_ms.growth)) {
      options.on_progress?.(task);
      if (task.status === 'succeeded' || task.status === 'failed') return task;
      if (deadline.left_ms <= 0) throw new WaitTimeoutError(task, deadline.wait_s);
      await pause(Math.min(pause_ms, deadline.left_ms), options.signal);
      task = await this.get(task.id, patient(options));
    }
  }

  /** Errors have the id of the task: it goes on without its caller. */
  async #cancelingOnAbort(id: string, options: WaitOptions, work: () => Promise<Task>): Promise<Task> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof MedleyError) error.task_id = id;
      // Whatever comes of it, the caller has left. A provider that bills it anyway lets it go on.
      if (options.cancel_on_abort && options.signal?.aborted) await this.cancel(id).catch(() => undefined);
      throw error;
    }
  }
}

function isSucceeded(task: Task): task is SucceededTask {
  return task.status === 'succeeded';
}

function patient(options: CallOptions): CallOptions {
  const { signal, timeout_ms, max_retries = poll_retries_min } = options;
  return { signal, timeout_ms, max_retries };
}

/** The end of a wait; there may be none. */
class Deadline {
  readonly wait_s: number;
  readonly #at_ms: number;

  constructor(wait_s: number = Infinity) {
    if (!(wait_s >= 0)) throw new MedleyError('wait must be a number of seconds from 0.');
    this.wait_s = wait_s;
    this.#at_ms = Date.now() + wait_s * 1000;
  }

  get left_ms(): number {
    return Math.max(0, this.#at_ms - Date.now());
  }
}

/** A page without https has no randomUUID(), and Node 18 no `crypto`: a key only has to be new. */
function randomKey(): string {
  const random = () => Math.random().toString(36).slice(2, 12).padEnd(10, '0');
  const digits = typeof crypto === 'undefined' ? '' : [...crypto.getRandomValues(new Uint8Array(16))].map(hex).join('');
  return `client-${Date.now().toString(36)}-${digits || `${random()}${random()}${random()}`}`;
}

function hex(byte: number): string {
  return byte.toString(16).padStart(2, '0');
}
