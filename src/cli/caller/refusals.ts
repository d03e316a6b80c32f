import type { Command } from 'commander';
import type { Refusals } from '../../../clients/typescript/src/index.ts';
import { refusal_reasons } from '../../errors.ts';
import { says, table, type CommandResult } from '../result.ts';
import { oneOf } from './one-of.ts';
import { readTime } from './read-time.ts';
import { takesService, withService, type Service } from './service.ts';
import { oneLine } from './terminal.ts';

/** Shows how many requests of the account were refused before any work. */
export function refusalsCommand(refusals: Command): void {
  refusals
    .option('--by <groups>', 'several of hour, day, reason, key, model, project, budget', 'reason,key,model')
    .option('--reason <reason>', 'only for this reason, such as insufficient_balance')
    .option('--key <id>', 'only of this key')
    .option('--since <when>', 'since a time, or how long ago, such as 7d; else the last 24 hours')
    .option('--until <when>', 'before a time, or how long ago');
  says(takesService(refusals), () => {
    const options: Options = refusals.opts();
    return withService(options.url, (service) => showRefusals(service, options));
  });
}

type Options = { url?: string; by: string; reason?: string; key?: string; since?: string; until?: string };

async function showRefusals({ client }: Service, options: Options): Promise<CommandResult> {
  const { by, reason, key, since, until } = options;
  const report = await client.refusals({
    group_by: by,
    reason: oneOf('--reason', refusal_reasons, reason),
    key,
    from: since === undefined ? undefined : readTime('--since', since),
    to: until === undefined ? undefined : readTime('--until', until),
  });
  return { json: report, text: textOf(report) };
}

function textOf({ group_by, data, total, has_more }: Refusals): string {
  if (data.length === 0) return 'Nothing was refused.';
  const rows = data.map((row) => {
    const names = new Map<string, unknown>(Object.entries(row));
    return [...group_by.map((group) => oneLine(String(names.get(group) ?? '-'), 80)), String(row.count)];
  });
  const more = has_more ? '\nThere are more groups: these have the most.' : '';
  return `${table([[...group_by.map((group) => group.toUpperCase()), 'REFUSED'], ...rows])}\n${total} in all.${more}`;
}
