import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import { ApiError, type Medley, type Model, type Task } from '../../../clients/typescript/src/index.ts';
import { CommandError, says, type CommandResult } from '../result.ts';
import { deliver, type Delivery } from './deliver.ts';
import { readTarget } from './outputs.ts';
import { checkFiles, inputOf, readInput, type InputWord } from './run-input.ts';
import { takesService, withService, type Service } from './service.ts';
import { interruptible, oneLine, openProgress, type Progress } from './terminal.ts';

type Options = {
  url?: string;
  input: string[];
  output?: string;
  force?: boolean;
  wait: boolean;
  quiet?: boolean;
  show: boolean;
  json?: boolean;
  idempotencyKey?: string;
};

export function runCommandOfCallers(run: Command): void {
  const collect = (word: string, before: string[]) => [...before, word];
  run
    .option('-i, --input <name=value>', 'a field of the input; name:=JSON, name=@FILE uploads a file', collect, [])
    .option('-o, --output <file>', 'save to this file or folder, or - for stdout')
    .option('--force', 'overwrite files that are there')
    .option('--no-wait', 'print the task and do not wait for its end')
    .option('--no-show', 'show no image in the terminal')
    .option('-q, --quiet', 'no progress and no price')
    .option('--idempotency-key <key>', 'the same key and input are one task for a day, and are paid once');
  says(takesService(run), (model = '', prompt) =>
    interruptible((signal) => {
      const options: Options = run.opts();
      return withService(options.url, (service) => runOne(service, { model, prompt, options }, signal));
    }),
  );
}

type Request = { model: string; prompt: string | undefined; options: Options };

async function runOne(
  service: Service,
  { model, prompt, options }: Request,
  signal: AbortSignal,
): Promise<CommandResult> {
  const { force = false, json = false, quiet = json } = options;
  const target = readTarget(options.output, { force, json });
  if (!options.wait && target.kind !== 'none')
    throw new CommandError('--no-wait saves nothing: the task has no files yet. Use medley tasks save later.', 2);
  const { client } = service;
  const { input_schema } = await findModel(client, model, signal);
  const words = readInput(prompt, options.input, input_schema);
  await checkFiles(words);
  const progress = openProgress({ quiet });
  try {
    const input = inputOf(await uploaded(client, words, progress, signal), input_schema);
    const idempotency_key = options.idempotencyKey ?? `cli-${randomUUID()}`;
    if (!options.wait) {
      const task = await client.tasks.create(model, input, { idempotency_key, signal });
      return { json: task, text: task.id };
    }
    const task = await generated(client, { model, input, idempotency_key }, progress, signal);
    progress.end();
    const delivery: Delivery = { target, quiet, json, show: options.show };
    return await deliver(service, task, delivery, signal);
  } finally {
    progress.end();
  }
}

/** Throws CommandError for a chat model, and names those that there are for one that is none. */
async function findModel(client: Medley, id: string, signal: AbortSignal): Promise<Model> {
  try {
    const model = await client.models.get(id, { signal });
    if (model.modality !== 'chat') return model;
    throw new CommandError(`${id} is a chat model: use medley chat ${id}.`, 2);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    const models = await client.models.list({ limit: 1000 }, { signal }).take(1000);
    const names = models
      .filter(({ modality }) => ['image', 'video', 'audio'].includes(modality))
      .map((each) => each.id);
    const shown = names.slice(0, 20).map((name) => oneLine(name, 100));
    const more = names.length > shown.length ? `, and ${names.length - shown.length} more` : '';
    throw new CommandError(`There is no model "${oneLine(id, 100)}". There are: ${shown.join(', ')}${more}.`, 1, {
      status: 404,
    });
  }
}

const upload_kept_s = 86_400;

async function uploaded(
  client: Medley,
  words: readonly InputWord[],
  progress: Progress,
  signal: AbortSignal,
): Promise<{ name: string; value: unknown }[]> {
  const values: { name: string; value: unknown }[] = [];
  for (const { name, value } of words) {
    if ('value' in value) {
      values.push({ name, value: value.value });
      continue;
    }
    progress.show(`uploading ${value.path}`);
    const options = { purpose: 'cli', expires_after_s: upload_kept_s, signal };
    values.push({ name, value: (await client.files.upload({ path: value.path }, options)).id });
  }
  return values;
}

type Run = { model: string; input: Record<string, unknown>; idempotency_key: string };

/** Waits for the task. Ctrl-C cancels it, and says what it costs. */
async function generated(
  client: Medley,
  { model, input, idempotency_key }: Run,
  progress: Progress,
  signal: AbortSignal,
): Promise<Task> {
  let latest: Task | undefined;
  const on_progress = (task: Task) => {
    latest = task;
    progress.show(`${task.id} ${task.status}`);
  };
  progress.show(`sending to ${model}`);
  try {
    return await client.generate(model, input, { idempotency_key, signal, cancel_on_abort: true, on_progress });
  } catch (error) {
    if (!signal.aborted || !latest) throw error;
    progress.end();
    throw await interruptedTask(client, latest.id);
  }
}

const last_words_ms = 10_000;

/** Returns the error of a task that Ctrl-C has ended, or could not end. */
async function interruptedTask(client: Medley, id: string): Promise<CommandError> {
  const shown = oneLine(id, 60);
  const read = client.tasks.get(id, { signal: AbortSignal.timeout(last_words_ms) });
  const task = await read.catch(() => undefined);
  const facts = { type: 'interrupted', task: task ?? null };
  if (task?.status === 'failed')
    return new CommandError(`Interrupted. The task ${shown} is canceled and costs nothing.`, 130, facts);
  if (task?.status === 'succeeded') {
    const { amount, currency } = task.cost;
    const advice = `save it with medley tasks save ${shown} -o FILE`;
    return new CommandError(
      `Interrupted. The task ${shown} was done and costs ${amount} ${currency}: ${advice}.`,
      130,
      facts,
    );
  }
  const message = `Interrupted. The task ${shown} could not be canceled: its provider bills it anyway, or the service gave no answer. It goes on: medley tasks wait ${shown}`;
  return new CommandError(message, 130, facts);
}
