import type { JSONObject } from '@ai-sdk/provider';
import { MedleyError, type Medley, type OutputItem, type SucceededTask, type Task } from '@medley/client';
import { callError } from './errors.ts';
import { fieldsOf, InputDraft, type Fields } from './fields.ts';
import { resolveFiles, type Placed } from './media-files.ts';
import { isJsonObject, type Scoped } from './namespaces.ts';
import { clientFor, setHeaders, type Connection } from './settings.ts';

/** The options that all calls of media models share. */
export type CallOptions = {
  providerOptions?: Scoped | undefined;
  abortSignal?: AbortSignal | undefined;
  headers?: Record<string, string | undefined> | undefined;
};

export type Finished = { task: SucceededTask; client: Medley; input: JSONObject; headers: Record<string, string> };

/** Fields of models are read again after a minute: the operator may change them. */
const fields_age_ms_max = 60_000;

/** Models of one provider whose fields are remembered; the one that was asked for longest ago goes first. */
const models_max = 500;

/** The media models of one provider. Models of one id share what they know of their fields. */
export class TaskModels {
  readonly #connect: () => Connection;
  readonly #models = new Map<string, TaskModel>();

  constructor(connect: () => Connection) {
    this.#connect = connect;
  }

  get(modelId: string): TaskModel {
    const model = this.#models.get(modelId) ?? new TaskModel(modelId, this.#connect);
    this.#models.delete(modelId);
    this.#models.set(modelId, model);
    const [oldest] = this.#models.keys();
    if (this.#models.size > models_max && oldest !== undefined) this.#models.delete(oldest);
    return model;
  }
}

/** A media model of the service: its fields, and tasks that run it. */
export class TaskModel {
  readonly modelId: string;
  readonly #connect: () => Connection;
  #fields: { read: Promise<Fields>; at_ms: number } | undefined;

  constructor(modelId: string, connect: () => Connection) {
    this.modelId = modelId;
    this.#connect = connect;
  }

  /** Begins an input with what the caller sets by `providerOptions.medley`. Throws APICallError if there is no such model. */
  async draft({ providerOptions, abortSignal }: CallOptions): Promise<InputDraft> {
    return new InputDraft(this.modelId, await this.fields(abortSignal), providerOptions?.['medley']);
  }

  /** Returns the fields of the model. Calls that come together read them once; an abort ends the waiting of one call. */
  fields(signal?: AbortSignal): Promise<Fields> {
    if (!this.#fields || Date.now() - this.#fields.at_ms > fields_age_ms_max) {
      const read = this.#readFields();
      const remembered = { read, at_ms: Date.now() };
      this.#fields = remembered;
      read.catch(() => {
        if (this.#fields === remembered) this.#fields = undefined;
      });
    }
    return untilAbort(this.#fields.read, signal);
  }

  async #readFields(): Promise<Fields> {
    const connection = this.#connect();
    const client = clientFor(connection, {}, () => undefined);
    try {
      const { input_schema } = await client.models.get(this.modelId, { repeat_refusals: false });
      return fieldsOf(jsonOf(input_schema));
    } catch (error) {
      throw callError(error, { url: `${connection.base_url}/v1/models/${this.modelId}`, values: {} }, true);
    }
  }

  /** Runs a task to its end. An abort cancels it, if its provider does not bill it anyway. Throws APICallError. */
  run(draft: InputDraft, placed: readonly Placed[], options: CallOptions): Promise<Finished> {
    return this.#withInput(draft, placed, options, async ({ client, input, idempotencyKey }) => {
      const { abortSignal: signal } = options;
      return client.generate(this.modelId, input, {
        signal,
        cancel_on_abort: true,
        repeat_refusals: false,
        ...(idempotencyKey !== undefined && { idempotency_key: idempotencyKey }),
      });
    }).then(({ value, ...others }) => ({ task: value, ...others }));
  }

  /** Creates a task and returns it as it is then. Uploaded files are left to their expiry. */
  async start(
    draft: InputDraft,
    placed: readonly Placed[],
    options: CallOptions & { webhookUrl?: string | undefined },
  ): Promise<{ task: Task; headers: Record<string, string> }> {
    const { abortSignal: signal, webhookUrl: webhook_url } = options;
    const { value, headers } = await this.#withInput(
      draft,
      placed,
      options,
      ({ client, input, idempotencyKey, keep }) => {
        keep();
        return client.tasks.create(this.modelId, input, {
          signal,
          webhook_url,
          repeat_refusals: false,
          ...(idempotencyKey !== undefined && { idempotency_key: idempotencyKey }),
        });
      },
    );
    return { task: value, headers };
  }

  async get(
    id: string,
    { abortSignal: signal, headers }: CallOptions,
  ): Promise<{ task: Task; client: Medley; headers: Record<string, string> }> {
    const connection = this.#connect();
    let answered: Record<string, string> = {};
    const client = clientFor(
      connection,
      splitHeaders(headers).headers,
      (each) => (answered = Object.fromEntries(each)),
    );
    try {
      return { task: await client.tasks.get(id, { signal }), client, headers: answered };
    } catch (error) {
      throw callError(error, { url: `${connection.base_url}/v1/tasks/${id}`, values: {} }, true);
    }
  }

  async #withInput<T>(
    draft: InputDraft,
    placed: readonly Placed[],
    { abortSignal: signal, headers }: CallOptions,
    work: (parts: {
      client: Medley;
      input: JSONObject;
      idempotencyKey: string | undefined;
      keep: () => void;
    }) => Promise<T>,
  ): Promise<{ value: T; client: Medley; input: JSONObject; headers: Record<string, string> }> {
    const connection = this.#connect();
    const { headers: own, idempotencyKey } = splitHeaders(headers);
    let answered: Record<string, string> = {};
    const client = clientFor(connection, own, (each) => (answered = Object.fromEntries(each)));
    const request = { url: `${connection.base_url}/v1/generate`, values: { model: this.modelId, input: draft.input } };
    let uploaded: string[] = [];
    const clean = () => {
      for (const id of uploaded) client.files.delete(id).catch(() => undefined); // it expires anyway
    };
    try {
      const resolved = await resolveFiles(placed, client, signal);
      uploaded = resolved.uploaded;
      for (const [field, value] of resolved.values) draft.set(field, value);
      const value = await work({ client, input: draft.input, idempotencyKey, keep: () => (uploaded = []) });
      clean();
      return { value, client, input: draft.input, headers: answered };
    } catch (error) {
      clean();
      const failed = callError(error, request, idempotencyKey !== undefined);
      if (failed !== error) this.#fields = undefined; // the model may have other fields by now
      throw failed;
    }
  }
}

/** Rejects with the reason of the signal as soon as it is aborted. What was waited for goes on, for others. */
function untilAbort<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    if (signal.aborted) return leave();
    signal.addEventListener('abort', leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}

function splitHeaders(headers: CallOptions['headers']): {
  headers: Record<string, string>;
  idempotencyKey: string | undefined;
} {
  const set = Object.entries(setHeaders(headers));
  const isKey = ([name]: [string, string]) => name.toLowerCase() === 'idempotency-key';
  return { headers: Object.fromEntries(set.filter((each) => !isKey(each))), idempotencyKey: set.find(isKey)?.[1] };
}

function jsonOf(value: unknown): JSONObject {
  const copy: JSONObject | undefined = JSON.parse(JSON.stringify(value ?? {}));
  return isJsonObject(copy) ? copy : {};
}

/** Downloads the bytes of an output. The task is paid: an error names it, and is not asked for again. */
export async function bytesOf(
  { task, client }: Pick<Finished, 'task' | 'client'>,
  output: OutputItem,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  try {
    const blob = await client.download(output, { signal });
    return new Uint8Array(await blob.arrayBuffer());
  } catch (error) {
    if (error instanceof MedleyError) error.task_id = task.id;
    throw callError(error, { url: output.url, values: {} }, false);
  }
}

export type Answer = { timestamp: Date; modelId: string; headers: Record<string, string> };

export function answerOf(task: Task, headers: Record<string, string>): Answer {
  return { timestamp: new Date(task.created_at), modelId: task.model, headers };
}

/** The task's id, its cost to the millionth, and facts of its outputs without their links, which are secrets. */
export function factsOf({ id, cost, output }: Task): JSONObject & { outputs: JSONObject[] } {
  return {
    taskId: id,
    cost: { amount: cost.exact, currency: cost.currency },
    outputs: output.map(({ content_type, size_bytes, width, height, duration }) => ({
      contentType: content_type,
      sizeBytes: size_bytes,
      ...(width !== undefined && { width }),
      ...(height !== undefined && { height }),
      ...(duration !== undefined && { durationSeconds: duration }),
    })),
  };
}

/** Outputs of this type. A model may add others, such as a preview. */
export function outputsOf(task: Task, type: OutputItem['type']): OutputItem[] {
  return task.output.filter((each) => each.type === type);
}

/** Returns how many results one task may have: what the field for their number allows, 1 without one. */
export async function resultsMax(model: TaskModel): Promise<number> {
  const fields = await model.fields();
  const field = count_fields.map((name) => fields.get(name)).find((each) => each !== undefined);
  const numbers = field?.choices?.filter((each) => typeof each === 'number') ?? [];
  return field ? (field.maximum ?? (numbers.length > 0 ? Math.max(...numbers) : unlisted_results_max)) : 1;
}

export const count_fields = ['n', 'num_images', 'num_outputs', 'number_of_images', 'num_videos'];

/** Where the schema has no limit, the service says what is too many. */
const unlisted_results_max = 10;
