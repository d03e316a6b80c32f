import { ApiError, invalidField } from '../errors.ts';
import { nearest } from '../lib/edit-distance.ts';
import { isId } from '../lib/ids.ts';
import { isRecord } from '../lib/is-record.ts';
import { checkUserUrl, type AddressRules } from '../net/address.ts';
import { event_kinds, event_types } from './events.ts';

/** The part of an endpoint that its account chooses. */
export type EndpointFields = {
  url: string;
  description: string;
  /** Types of events, all of a kind as `task.*`, or `*`. */
  events: readonly string[];
  /** These four narrow events of tasks; null: any. */
  models: readonly string[] | null;
  key_ids: readonly string[] | null;
  project_ids: readonly string[] | null;
  /** Pairs of metadata as the JSON text of a task has them: `"team":"web"`. */
  pairs: readonly string[] | null;
  enabled: boolean;
};

type FilterFields = Pick<EndpointFields, 'models' | 'key_ids' | 'project_ids' | 'pairs'>;

const field_names = ['url', 'description', 'events', 'filters', 'enabled'];
const filter_names = ['models', 'keys', 'projects', 'metadata'];
const url_length_max = 2_048;
const description_length_max = 200;
const list_length_max = 50;
const pairs_max = 16;

/**
 * Reads the fields of an endpoint from a body; what the body does not name stays as it is in `before`, and without that
 * `url` and `events` are required. Throws ApiError 400, or 422 for an address that may not be reached.
 */
export function readEndpointFields(
  body: Record<string, unknown> | undefined,
  rules: AddressRules,
  before?: EndpointFields,
): EndpointFields {
  const fields = body ?? {};
  checkNames(fields, field_names, '');
  const { url, description, events, filters, enabled } = fields;
  return {
    url: url === undefined && before ? before.url : readUrl(url, rules),
    description: description === undefined ? (before?.description ?? '') : readDescription(description),
    events: events === undefined && before ? before.events : readEvents(events),
    ...(filters === undefined && before
      ? { models: before.models, key_ids: before.key_ids, project_ids: before.project_ids, pairs: before.pairs }
      : readFilters(filters ?? {})),
    enabled: enabled === undefined ? (before?.enabled ?? true) : readFlag('enabled', enabled),
  };
}

/** The filters of an endpoint as callers write them. */
export function filtersOf({ models, key_ids, project_ids, pairs }: FilterFields) {
  const metadata: unknown = JSON.parse(`{${pairs?.join(',') ?? ''}}`);
  return {
    models: models ?? [],
    keys: key_ids ?? [],
    projects: project_ids ?? [],
    metadata: isRecord(metadata) ? metadata : {},
  };
}

/** Returns the error 400 for a field: `problem` is the sentence after its name. */
export function invalidValue(name: string, problem: string): ApiError {
  return invalidField(name, `${name} ${problem}`);
}

function checkNames(fields: Record<string, unknown>, names: readonly string[], prefix: string): void {
  for (const name of Object.keys(fields)) {
    if (names.includes(name)) continue;
    const near = nearest(name, names);
    const shown = JSON.stringify(name.slice(0, 60));
    const hint = near === undefined ? `Use some of ${names.join(', ')}.` : `Did you mean "${near}"?`;
    throw new ApiError('invalid_request', `${shown} is not a known field. ${hint}`, {
      param: prefix + name.slice(0, 60),
    });
  }
}

function readUrl(value: unknown, rules: AddressRules): string {
  if (typeof value !== 'string' || value === '') throw invalidValue('url', 'must be an absolute http(s) URL.');
  if (value.length > url_length_max) throw invalidValue('url', `may have at most ${url_length_max} characters.`);
  const problem = checkUserUrl(value, rules);
  if (problem !== undefined) throw new ApiError('invalid_input', `url ${problem}`, { param: 'url' });
  return value;
}

function readDescription(value: unknown): string {
  if (typeof value === 'string' && value.length <= description_length_max && !/\p{Cc}/u.test(value))
    return value.toWellFormed().trim();
  throw invalidValue('description', `must be a line of at most ${description_length_max} characters.`);
}

function readFlag(name: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  throw invalidValue(name, 'must be true or false.');
}

function readEvents(value: unknown): string[] {
  const choices = ['*', ...event_kinds.map((kind) => `${kind}.*`), ...event_types];
  const list: unknown[] = Array.isArray(value) ? value : [];
  if (list.length === 0 || list.length > list_length_max)
    throw invalidValue('events', `must be a list with at least one of ${choices.join(', ')}.`);
  for (const each of list) {
    if (typeof each === 'string' && choices.includes(each)) continue;
    const near = typeof each === 'string' ? nearest(each, choices) : undefined;
    const shown = JSON.stringify(typeof each === 'string' ? each.slice(0, 60) : typeof each);
    const hint = near === undefined ? `Use some of ${choices.join(', ')}.` : `Did you mean "${near}"?`;
    throw invalidValue('events', `has ${shown}, which is no event. ${hint}`);
  }
  return choices.filter((choice) => list.includes(choice));
}

function readFilters(value: unknown): FilterFields {
  if (!isRecord(value)) throw invalidValue('filters', `must be an object with some of ${filter_names.join(', ')}.`);
  checkNames(value, filter_names, 'filters.');
  const isProject = (text: string) => text === 'default' || isId('project', text);
  const isModel = (text: string) => text.length <= 200 && /^[\x21-\x7e]+$/.test(text);
  return {
    models: readTexts('filters.models', value['models'], 'ids of models, such as "sandbox/image"', isModel),
    key_ids: readTexts('filters.keys', value['keys'], 'ids of keys, such as "key_01k…"', (text) => isId('key', text)),
    project_ids: readTexts('filters.projects', value['projects'], 'ids of projects, such as "default"', isProject),
    pairs: readPairs(value['metadata']),
  };
}

function readTexts(
  param: string,
  value: unknown,
  what: string,
  fits: (text: string) => boolean,
): readonly string[] | null {
  if (value === undefined || value === null) return null;
  const list: unknown[] = Array.isArray(value) ? value : [undefined];
  const texts = list.filter((each): each is string => typeof each === 'string' && fits(each));
  if (texts.length < list.length || texts.length > list_length_max)
    throw invalidValue(param, `must be a list of at most ${list_length_max} ${what}.`);
  return texts.length === 0 ? null : [...new Set(texts)];
}

function readPairs(value: unknown): readonly string[] | null {
  if (value === undefined || value === null) return null;
  const pairs = isRecord(value) ? Object.entries(value) : undefined;
  const fits = ([name, text]: [string, unknown]) =>
    name.length <= 64 && typeof text === 'string' && text.length <= 512 && !`${name}${text}`.includes('\0');
  if (!pairs || pairs.length > pairs_max || !pairs.every(fits))
    throw invalidValue(
      'filters.metadata',
      `must be an object of at most ${pairs_max} texts, as the metadata of a task is.`,
    );
  return pairs.length === 0 ? null : pairs.map((pair) => JSON.stringify(Object.fromEntries([pair])).slice(1, -1));
}
