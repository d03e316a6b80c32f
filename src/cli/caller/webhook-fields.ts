import type { Command } from 'commander';
import type {
  SubscribedEvent,
  WebhookEndpointChange,
  WebhookEventType,
  WebhookFilters,
} from '../../../clients/typescript/src/index.ts';
import { CommandError } from '../result.ts';
import { collectPair, pairsIn } from './pairs.ts';
import { oneLine } from './terminal.ts';

/** Options of an endpoint; Commander makes `enable` false of `--disable`. */
export type FieldOptions = {
  address?: string;
  events?: string;
  description?: string;
  models?: string;
  keys?: string;
  metadata?: string[];
  enable?: boolean;
  disable?: boolean;
};

/** Adds the options that `create` and `change` have in common. */
export function takesFields(command: Command): Command {
  return command
    .option('--description <text>', 'for people')
    .option('--models <ids>', 'only events of tasks of these models, with commas between them')
    .option('--keys <ids>', 'only events of tasks of these keys')
    .option(
      '--metadata <name=value>',
      'only events of tasks with this metadata; several times: with all of it',
      collectPair,
    )
    .option('--disable', 'send nothing to it');
}

/** Returns the fields that the options set. Filters are replaced as a whole. Throws CommandError (usage). */
export function fieldsIn(options: FieldOptions): WebhookEndpointChange {
  const { address, events, description, enable, disable } = options;
  if (enable && disable) throw new CommandError('--enable and --disable are opposites: say one of them.', 2);
  const filters = filtersIn(options);
  return {
    ...(address !== undefined && { url: address }),
    ...(events !== undefined && { events: eventsIn(events) }),
    ...(description !== undefined && { description }),
    ...(filters && { filters }),
    ...((enable ?? disable) && { enabled: enable === true }),
  };
}

function filtersIn({ models, keys, metadata }: FieldOptions): WebhookFilters | undefined {
  if (models === undefined && keys === undefined && metadata === undefined) return undefined;
  return {
    ...(models !== undefined && { models: listIn(models) }),
    ...(keys !== undefined && { keys: listIn(keys) }),
    ...(metadata && { metadata: pairsIn('--metadata', metadata) }),
  };
}

function listIn(text: string): string[] {
  return text.split(',').flatMap((word) => word.trim() || []);
}

/** Returns types of events with commas between them. The service says which there are. */
export function eventsIn(text: string): SubscribedEvent[] {
  const isEvent = (word: string): word is SubscribedEvent => word !== '';
  return listIn(text).filter(isEvent);
}

/** Returns the type of one event. Throws CommandError (usage) if it is none; the service says which there are. */
export function eventIn(text: string): WebhookEventType {
  const isEvent = (word: string): word is WebhookEventType => /^\w+\.\w+$/.test(word);
  if (isEvent(text)) return text;
  throw new CommandError(`The event must be one such as task.succeeded, not "${oneLine(text, 60)}".`, 2);
}
