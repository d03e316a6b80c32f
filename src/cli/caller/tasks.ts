import type { Command } from 'commander';
import { TaskFailedError, type Task } from '../../../clients/typescript/src/index.ts';
import { CommandError, says, table, type CommandResult } from '../result.ts';
import { deliver } from './deliver.ts';
import { readTarget } from './outputs.ts';
import { takesService, withService, type Service } from './service.ts';
import { interruptible, oneLine, openProgress } from './terminal.ts';

type Work = (service: Service, id: string, signal: AbortSignal) => Promise<CommandResult>;

export function tasksCommands(tasks: Command): void {
  const list = tasks.command('list', { isDefault: true }).description('the newest tasks of the account');
  list
    .option('--status <status>', 'only these: queued, running, succeeded or failed')
    .option('--model <model>', 'only of this model')
    .option('-n, --limit <number>', 'how many', '20');
  list.allowExcessArguments(); // `tasks WORD` is this command, since it is the one without a name
  says(takesService(list), () =>
    interruptible((signal) => {
      const [word] = list.args;
      if (word !== undefined) throw new CommandError(noCommand(tasks, word), 2);
      const options: ListOptions = list.opts();
      return withService(options.url, (service) => listTasks(service, options, signal));
    }),
  );
  of(tasks.command('show <task>').description('one task'), async ({ client }, id, signal) => {
    const task = await client.tasks.get(id, { signal });
    return { json: task, text: describe(task) };
  });
  of(tasks.command('cancel <task>').description('end a task that has not ended'), async ({ client }, id, signal) => {
    const task = await client.tasks.cancel(id, { signal });
    return { json: task, text: `The task ${oneLine(task.id, 60)} is canceled and costs nothing.` };
  });
  saveCommands(tasks);
}

function noCommand(tasks: Command, word: string): string {
  const names = tasks.commands.map((command) => command.name()).filter((name) => name !== 'help');
  return `There is no command "tasks ${oneLine(word, 60)}". There are: ${names.join(', ')}.`;
}

type SaveOptions = { output?: string; force?: boolean; quiet?: boolean; show: boolean; json?: boolean };

/** Both have the files; `wait` waits for them first. */
function saveCommands(tasks: Command): void {
  const save = tasks.command('save <task>').description('save the files of a task that has succeeded');
  const wait = tasks.command('wait <task>').description('wait for the end of a task; with -o save its files');
  for (const command of [save, wait]) {
    command
      .option('-o, --output <file>', 'save to this file or folder, or - for stdout')
      .option('--force', 'overwrite files that are there')
      .option('--no-show', 'show no image in the terminal')
      .option('-q, --quiet', 'no progress and no price');
    of(command, async (service, id, signal) => {
      const options: SaveOptions = command.opts();
      const { force = false, json = false, quiet = json, show } = options;
      const target = readTarget(options.output, { force, json });
      if (command === save && target.kind === 'none') throw new CommandError('Say where: -o FILE, or -o FOLDER/.', 2);
      const task =
        command === wait ? await awaitEnd(service, id, { quiet, signal }) : await readEnd(service, id, signal);
      if (task.status === 'failed') throw new TaskFailedError(task);
      return deliver(service, task, { target, quiet, json, show }, signal);
    });
  }
}

/** Links of a task end after a day: these are new. */
async function readEnd({ client }: Service, id: string, signal: AbortSignal): Promise<Task> {
  const task = await client.tasks.get(id, { signal });
  if (task.status === 'queued' || task.status === 'running')
    throw new CommandError(`The task is ${task.status}. Use medley tasks wait ${oneLine(id, 60)} -o FILE.`);
  return task.status === 'failed' ? task : { ...task, output: await client.tasks.links(id, { signal }) };
}

async function awaitEnd(
  service: Service,
  id: string,
  { quiet, signal }: { quiet: boolean; signal: AbortSignal },
): Promise<Task> {
  const progress = openProgress({ quiet });
  try {
    const on_progress = (task: Task) => progress.show(`${task.id} ${task.status}`);
    const task = await service.client.tasks.wait(id, { signal, on_progress });
    return task.status === 'failed' ? task : await readEnd(service, id, signal);
  } finally {
    progress.end();
  }
}

function of(command: Command, work: Work): void {
  says(takesService(command), (id = '') =>
    interruptible((signal) => {
      const { url }: { url?: string } = command.opts();
      return withService(url, (service) => work(service, id, signal));
    }),
  );
}

type ListOptions = { url?: string; status?: string; model?: string; limit: string };

const statuses = ['queued', 'running', 'succeeded', 'failed'] as const;
const listed_max = 10_000;

async function listTasks(
  { client }: Service,
  { status, model, limit }: ListOptions,
  signal: AbortSignal,
): Promise<CommandResult> {
  const count = /^\d{1,5}$/.test(limit) ? Number(limit) : 0;
  if (count < 1 || count > listed_max) throw new CommandError(`--limit must be a number from 1 to ${listed_max}.`, 2);
  const chosen = statuses.find((each) => each === status);
  if (status !== undefined && chosen === undefined)
    throw new CommandError(`--status must be one of ${statuses.join(', ')}.`, 2);
  const query = { status: chosen, model, limit: Math.min(100, count) };
  const tasks = await client.tasks.list(query, { signal }).take(count);
  const rows = tasks.map((task) => [task.id, task.status, task.model, costOf(task), task.created_at]);
  const shown = rows.map((row) => row.map((cell) => oneLine(cell, 80)));
  const text =
    rows.length === 0 ? 'There are no tasks.' : table([['TASK', 'STATUS', 'MODEL', 'COST', 'CREATED'], ...shown]);
  return { json: { tasks }, text };
}

function costOf({ status, cost, estimated_cost }: Task): string {
  const is_final = status === 'succeeded' || status === 'failed';
  const { amount, currency } = is_final ? cost : estimated_cost;
  return `${is_final ? '' : 'up to '}${amount} ${currency}`;
}

function describe(task: Task): string {
  const { id, status, model, created_at, completed_at, error, output, metadata } = task;
  const rows = [
    ['Task', id],
    ['Status', status],
    ['Model', model],
    ['Cost', costOf(task)],
    ['Created', created_at],
    ...(completed_at === null ? [] : [['Completed', completed_at]]),
    ...(error ? [['Error', `${error.type}: ${error.message}`]] : []),
    ...Object.entries(metadata).map(([name, value]) => [`Metadata ${name}`, value]),
    ...output.map(({ content_type, url }) => ['File', `${content_type} ${url}`]),
  ];
  return table(rows.map((row) => row.map((cell) => oneLine(cell, 5_000))));
}
