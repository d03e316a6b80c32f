import type { Command } from 'commander';
import type { Call } from '../../../clients/typescript/src/index.ts';
import { CommandError, says, table, type CommandResult } from '../result.ts';
import { oneOf } from './one-of.ts';
import { collectPair, pairsIn } from './pairs.ts';
import { readTime } from './read-time.ts';
import { takesService, withService, type Service } from './service.ts';
import { interruptible, oneLine } from './terminal.ts';

/** Lists what the account has called: chat calls and tasks. */
export function callsCommand(calls: Command): void {
  calls
    .option('--kind <kind>', 'only these: chat or task')
    .option('--status <status>', 'only these: queued, running, succeeded or failed')
    .option('--model <model>', 'only of this model')
    .option('--key <id>', 'only of this key')
    .option('--error <type>', 'only what failed with this type of error')
    .option('--http-status <status>', 'only chat calls that were answered with this status, such as 429')
    .option('--user <name>', 'only of this end user')
    .option('--tag <tag>', 'only with this tag')
    .option('--metadata <name=value>', 'only with this metadata; several times: with all of it', collectPair)
    .option('--since <when>', 'since a time, or how long ago, such as 24h')
    .option('--until <when>', 'before a time, or how long ago')
    .option('-n, --limit <number>', 'how many', '20');
  says(takesService(calls), () =>
    interruptible((signal) => {
      const options: Options = calls.opts();
      return withService(options.url, (service) => listCalls(service, options, signal));
    }),
  );
}

type Options = {
  url?: string;
  kind?: string;
  status?: string;
  model?: string;
  key?: string;
  error?: string;
  httpStatus?: string;
  user?: string;
  tag?: string;
  metadata?: string[];
  since?: string;
  until?: string;
  limit: string;
};

const kinds = ['chat', 'task'] as const;
const statuses = ['queued', 'running', 'succeeded', 'failed'] as const;
const listed_max = 10_000;

async function listCalls({ client }: Service, options: Options, signal: AbortSignal): Promise<CommandResult> {
  const { kind, status, model, key, error, httpStatus, user, tag, metadata, since, until, limit } = options;
  const count = /^\d{1,5}$/.test(limit) ? Number(limit) : 0;
  if (count < 1 || count > listed_max) throw new CommandError(`--limit must be a number from 1 to ${listed_max}.`, 2);
  const query = {
    kind: oneOf('--kind', kinds, kind),
    status: oneOf('--status', statuses, status),
    model,
    key,
    error,
    http_status: httpStatus === undefined ? undefined : readStatus(httpStatus),
    user,
    tag,
    metadata: metadata && pairsIn('--metadata', metadata),
    created_after: since === undefined ? undefined : readTime('--since', since),
    created_before: until === undefined ? undefined : readTime('--until', until),
    limit: Math.min(100, count),
  };
  const calls = await client.calls.list(query, { signal }).take(count);
  const rows = calls.map((call) => cellsOf(call).map((cell) => oneLine(cell, 80)));
  const head = ['CALL', 'STATUS', 'MODEL', 'TOKENS', 'TOOK', 'COST', 'CREATED'];
  return { json: { calls }, text: rows.length === 0 ? 'There are no calls.' : table([head, ...rows]) };
}

function readStatus(text: string): number {
  if (/^[1-5]\d\d$/.test(text)) return Number(text);
  throw new CommandError('--http-status must be a number from 100 to 599, such as 429.', 2);
}

function cellsOf({ id, status, error_type, model, usage, total_ms, cost, created_at }: Call): string[] {
  return [
    id,
    error_type === null ? status : `${status}: ${error_type}`,
    model,
    usage === null ? '-' : `${usage.input_tokens} + ${usage.output_tokens}`,
    total_ms === null ? '-' : `${(total_ms / 1000).toFixed(1)} s`,
    `${cost.exact} ${cost.currency}`,
    created_at,
  ];
}
