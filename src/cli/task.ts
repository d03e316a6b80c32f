import type { Command } from 'commander';
import type { CommandApp } from '../app/command-app.ts';
import type { Queryable } from '../db/database.ts';
import { exact } from '../money/money.ts';
import { findTask, listAllTasks } from '../tasks/list.ts';
import type { FinishParts } from '../tasks/finish.ts';
import { failManually } from '../tasks/manual.ts';
import { listAttempts, refOf, type Task } from '../tasks/task.ts';
import { waitingOf, type WaitingPlace } from '../tasks/waiting.ts';
import { deliveryOfTask, listDeliveryAttempts } from '../webhooks/delivery.ts';
import { requireAccount as foundAccount } from './account.ts';
import {
  CommandError,
  auditCommand,
  readText,
  says,
  table,
  withApp,
  withEngine,
  type CommandResult,
} from './command.ts';

export function taskCommands(task: Command): void {
  const list = task
    .command('list')
    .description('the newest tasks')
    .option('--account <account>', 'only of this account');
  list.option('--status <status>', 'only in this status').option('--limit <n>', 'number of tasks', '50');
  says(list, () => withApp((app) => listSome(app, list.opts())));

  says(task.command('show <task>').description('one task with its attempts and its webhook'), (id = '') =>
    withApp((app) => showOne(app, id)),
  );

  const fail = task.command('fail <task>').description('end a task that hangs: it fails and is refunded');
  fail.requiredOption('--reason <text>', 'the reason, for the record');
  says(fail, (id = '') => withEngine((app) => failOne(app, id, fail.opts())));
}

async function listSome(
  app: CommandApp,
  options: { account?: string; status?: string; limit?: string },
): Promise<CommandResult> {
  const limit = /^\d{1,4}$/.test(options.limit ?? '') ? Number(options.limit) : 0;
  if (limit < 1) throw new CommandError('--limit must be a number from 1 to 9999.', 2);
  const statuses = ['queued', 'running', 'succeeded', 'failed'];
  if (options.status !== undefined && !statuses.includes(options.status)) {
    throw new CommandError(`--status must be one of ${statuses.join(', ')}.`, 2);
  }
  if (options.account !== undefined) await foundAccount(app, options.account);
  const tasks = (await listAllTasks(app.db, { account_id: options.account, status: options.status, limit })).map(
    described,
  );
  const rows = tasks.map((row) => [
    row.id,
    row.account_id,
    row.model,
    row.status,
    row.cost,
    row.currency,
    row.created_at,
  ]);
  return { json: { tasks }, text: table([['task', 'account', 'model', 'status', 'cost', '', 'created'], ...rows]) };
}

async function showOne(app: CommandApp, id: string): Promise<CommandResult> {
  const task = await requireTask(app, id);
  const attempts = (await listAttempts(app.db, refOf(task))).map(
    ({ number, route, provider, state, reason, message }) => ({
      number,
      route,
      provider,
      state,
      reason,
      message,
    }),
  );
  const webhook = await webhookOf(app, task);
  const waiting = task.completed_at ? [] : await waitingFor(app, task);
  const json = {
    ...described(task),
    error: task.error_type && { type: task.error_type, message: task.error_message },
    waiting,
    attempts,
    webhook,
  };
  const lines = Object.entries(described(task)).map(([name, value]) => `${name.padEnd(12)}  ${value}`);
  if (task.error_type) lines.push(`error         ${task.error_type}: ${task.error_message}`);
  for (const { place, reason } of waiting) lines.push(`place ${String(place).padEnd(6)}  ${reason}`);
  for (const { number, route, provider, state, reason, message } of attempts) {
    lines.push(`attempt ${number}     ${route} by ${provider}: ${state}${reason ? ` (${reason})` : ''}`);
    if (message !== null && message !== reason) lines.push(`  said        ${message.replaceAll(/\s+/g, ' ')}`);
  }
  if (webhook) {
    lines.push(`webhook       ${webhook.id} ${webhook.state}: ${webhook.url}`);
    for (const { number, status, error, duration_ms } of webhook.attempts) {
      lines.push(`  attempt ${number}   ${status ?? error} after ${duration_ms} ms`);
    }
  }
  return { json, text: lines.join('\n') };
}

async function waitingFor(app: CommandApp, task: Task): Promise<WaitingPlace[]> {
  const { providers } = await app.catalog();
  return waitingOf(app.db, refOf(task), providers, new Date(app.clock.now()));
}

async function webhookOf(app: CommandApp, task: Task) {
  const delivery = await deliveryOfTask(app.db, refOf(task));
  if (!delivery) return null;
  const { id, state, url, next_at } = delivery;
  return { id, state, url, next_at, attempts: await listDeliveryAttempts(app.db, delivery) };
}

async function failOne(app: FinishParts, id: string, options: { reason?: string }): Promise<CommandResult> {
  const reason = readText(options.reason, '--reason', 500);
  const task = await requireTask(app, id);
  const ended = await failManually(app, task, reason);
  if (ended === 'final') throw new CommandError(`${id} is ${task.status} already.`);
  const { account_id, currency } = task;
  const details = { reason, released: exact(task.estimate), currency };
  await auditCommand(app, { account_id, action: 'task.fail', subject: id, details });
  return {
    json: described(await requireTask(app, id)),
    text: `${id} failed, ${details.released} ${currency} released`,
  };
}

async function requireTask(app: { db: Queryable }, id: string): Promise<Task> {
  const task = await findTask(app.db, id);
  if (!task) throw new CommandError(`There is no task "${id}".`);
  return task;
}

function described(task: Task) {
  return {
    id: task.id,
    account_id: task.account_id,
    key_id: task.key_id,
    model: task.model,
    status: task.status,
    estimate: exact(task.estimate),
    cost: exact(task.cost),
    currency: task.currency,
    created_at: task.created_at.toISOString(),
    started_at: task.started_at?.toISOString() ?? null,
    completed_at: task.completed_at?.toISOString() ?? null,
  };
}
