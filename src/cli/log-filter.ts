import { isRecord } from '../lib/is-record.ts';
import { CommandError } from './result.ts';

/** Conditions on lines of the log; all of them must fit. */
export type LogFilter = { account?: string; task?: string; request?: string; trace?: string; level?: string };

const levels: Readonly<Record<string, number>> = { trace: 10, debug: 20, info: 30, warn: 40, error: 50, fatal: 60 };

/** Ids that belong to what is looked for; older ones are forgotten. */
const related_max = 10_000;

/** Returns the object of a line, also after the words that a journal writes before it; of another line its text. */
export function objectIn(line: string): Record<string, unknown> {
  const start = line.indexOf('{');
  const json = start === -1 ? undefined : parse(line.slice(start));
  return isRecord(json) ? json : { msg: line };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Returns a test of lines in their order: a line that names both a task and its account or its request lets through the
 * later ones that name only one of them. Throws CommandError (usage).
 */
export function logFilter({ account, task, request, trace, level }: LogFilter): (line: string) => boolean {
  const least = level === undefined ? 0 : levels[level];
  if (least === undefined) throw new CommandError(`--level must be one of ${Object.keys(levels).join(', ')}.`, 2);
  const tasks_of_account = new Set<unknown>();
  const requests_of_task = new Set<unknown>();
  return (line) => {
    const object = objectIn(line);
    const task_id = object['task_id'] ?? object['task'];
    const { account_id, request_id, trace_id } = object;
    if (account !== undefined && account_id === account) remember(tasks_of_account, task_id);
    if (task !== undefined && task_id === task) remember(requests_of_task, request_id);
    const fits =
      (account === undefined || account_id === account || tasks_of_account.has(task_id)) &&
      (task === undefined || task_id === task || requests_of_task.has(request_id)) &&
      (request === undefined || request_id === request) &&
      (trace === undefined || trace_id === trace);
    const number = object['level'];
    return fits && (least === 0 || (typeof number === 'number' && number >= least));
  };
}

function remember(ids: Set<unknown>, id: unknown): void {
  if (id === undefined) return;
  ids.add(id);
  const [oldest] = ids;
  if (ids.size > related_max) ids.delete(oldest);
}
