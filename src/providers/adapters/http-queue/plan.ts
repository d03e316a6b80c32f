import type { OptionProblem } from '../../../catalog/check-settings.ts';
import type { Json, JsonObject, Unit } from '../../../catalog/model.ts';
import type { RateLimit } from '../../../concurrency/token-bucket.ts';
import { costProblems } from '../../http/upstream-cost.ts';
import type { PollInterval } from '../../http/poll-state.ts';
import { looksAt, type AnswerPlace } from './answer-place.ts';
import { Section } from './section.ts';
import { wordsIn } from './template.ts';

/** The protocol of an upstream, from the options of a route. */
export type Plan = {
  headers: Record<string, string>;
  /** The request that hands over a file before the submit, and the position of what stands for it there. */
  upload: (Call & { value: AnswerPlace }) | undefined;
  /** Without `id` the submit answers with the files. */
  submit: Call & { id: AnswerPlace | undefined; state: AnswerPlace | undefined };
  status: Status | undefined;
  /** The request for the files, if they are not in the response that reports the end of the run. */
  result: Call | undefined;
  cancel: (Call & { unbilled: (typeof unbilled_choices)[number]; looks_first: boolean }) | undefined;
  /** Values of the answer to the submit that later calls name. */
  save: { readonly [name: string]: AnswerPlace };
  /** Fields of the input that later calls name. */
  later_fields: readonly string[];
  errors: Errors;
  units: { [unit in (typeof reported_units)[number]]?: AnswerPlace };
  cost: { [kind in (typeof reported_costs)[number]]?: AnswerPlace };
  poll: PollInterval & { rate_limit: RateLimit };
};

export type Call = {
  method: (typeof methods)[number];
  path: string;
  query: Record<string, string>;
  headers: Record<string, string>;
  body: Json | undefined;
  body_as: (typeof body_forms)[number];
  lists: (typeof list_forms)[number];
};

export type Status = Call & {
  state: AnswerPlace;
  states: { readonly [phase in (typeof phases)[number]]: readonly string[] };
  code: AnswerPlace | undefined;
  message: AnswerPlace | undefined;
};

/** Positions of codes and messages of errors in responses, and their meanings. */
export type Errors = {
  code: AnswerPlace | undefined;
  message: AnswerPlace | undefined;
  /** Seconds until the next request. */
  retry_after: AnswerPlace | undefined;
  /** Codes of answers in which nothing is wrong; undefined: the HTTP status alone decides. Of an empty list every code is an error. */
  ok: readonly string[] | undefined;
  meanings: { readonly [meaning in Meaning]: readonly string[] };
};

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const body_forms = ['json', 'multipart', 'form', 'file'] as const;
const list_forms = ['repeat', 'brackets', 'json'] as const;
const phases = ['waiting', 'running', 'done', 'failed', 'dropped', 'unknown'] as const;
const unbilled_choices = ['waiting', 'always', 'never'] as const;
export const reported_units = ['second', 'character', 'input_token', 'output_token'] as const satisfies readonly Unit[];
const reported_costs = ['amount', 'credits'] as const;

/** In the order in which they are looked for. */
export const meanings = [
  'moderation',
  'input',
  'credentials',
  'rate_limit',
  'unavailable',
  'unknown',
  'failed',
] as const;

export type Meaning = (typeof meanings)[number];

const option_names = [
  'headers',
  'upload',
  'submit',
  'status',
  'result',
  'cancel',
  'errors',
  'units',
  'cost',
  'poll',
  'credit_price',
  'cost_currency',
];
const call_names = ['method', 'path', 'query', 'headers', 'body', 'body_as', 'lists'];

const fixed: readonly string[] = ['model', 'task_id', 'input.NAME'];

/** Reads the options of a route; with problems, the plan is not to be used. */
export function readPlan(options: JsonObject): { plan: Plan | undefined; problems: OptionProblem[] } {
  const problems: OptionProblem[] = [];
  const all = new Section(options, ['options'], problems, option_names);
  const upload = readUpload(all);
  const { submit, save } = readSubmit(all);
  const after = ['model', 'task_id', 'id', 'input.NAME', ...Object.keys(save).map((name) => `saved.${name}`)];
  const status = readStatus(all, after);
  const result = readCall(all, 'result', after);
  const cancel = readCancel(all, after);
  if (!status && (submit?.id !== undefined || submit?.state !== undefined || result || cancel)) {
    all.note('status', 'is required: runs with an id are asked for their state');
  }
  const headers = all.has('headers') ? all.templates('headers', ['key']) : { authorization: 'Bearer $key' };
  const errors = readErrors(all);
  const units = all.paths('units', reported_units);
  const cost = all.paths('cost', reported_costs);
  const poll = readPoll(all);
  problems.push(...costProblems(options));
  const later_fields = fieldsIn([status, result, cancel]);
  const common = { headers, upload, status, result, cancel, save, later_fields, errors, units, cost, poll };
  return { plan: submit && { ...common, submit }, problems };
}

/** The fields of the input that these calls name. */
function fieldsIn(calls: readonly (Call | undefined)[]): string[] {
  const texts = calls.flatMap((call) =>
    call ? [call.path, ...Object.values(call.query), ...Object.values(call.headers), ...textsIn(call.body)] : [],
  );
  const names = texts.flatMap(wordsIn).filter((name) => name.startsWith('input.'));
  return [...new Set(names.map((name) => name.slice('input.'.length)))];
}

function textsIn(body: Json | undefined): string[] {
  if (typeof body === 'string') return [body];
  return typeof body === 'object' && body !== null ? Object.values(body).flatMap(textsIn) : [];
}

function readSubmit(all: Section): { submit: Plan['submit'] | undefined; save: Plan['save'] } {
  const section = all.section('submit', [...call_names, 'id', 'state', 'save']);
  if (!section) {
    if (!all.has('submit')) all.note('submit', 'is required: how a run is started');
    return { submit: undefined, save: {} };
  }
  const call = callIn(section, [...fixed.slice(0, 2), 'events_url', 'input.NAME'], 'POST');
  const body = call.method === 'GET' ? undefined : (call.body ?? '$input');
  if (call.body_as === 'file' && call.body === undefined)
    section.note('body', 'is required: the field of the input with the file, such as $input.audio');
  const submit = {
    ...call,
    body,
    id: section.path('id', { required: all.has('status') }),
    state: section.path('state'),
  };
  return { submit, save: section.namedPaths('save') };
}

function readUpload(all: Section): Plan['upload'] {
  const section = all.section('upload', [...call_names, 'value']);
  if (!section) return undefined;
  const call = callIn(section, fixed, 'POST', ['file']);
  const value = section.path('value', { required: true });
  const is_file = call.body === undefined || call.body === '$file';
  const body_as = section.has('body_as') ? call.body_as : is_file ? 'file' : 'multipart';
  if (body_as !== 'file' && body_as !== 'multipart') section.note('body_as', 'must be one of: file, multipart');
  if (!textsIn(call.body ?? '$file').includes('$file')) section.note('body', 'must name $file, which is the file');
  return value && { ...call, body: call.body ?? '$file', body_as, value };
}

function callIn(
  section: Section,
  words: readonly string[],
  usual: Call['method'],
  body_words: readonly string[] = [],
): Call {
  const body_as = section.choice('body_as', body_forms) ?? 'json';
  const body = section.body('body', [...words, ...body_words]);
  checkBody(section, body_as, body, body_words);
  return {
    method: section.choice('method', methods) ?? usual,
    path: section.place(
      'path',
      words.filter((word) => word !== 'events_url'),
    ),
    query: section.templates('query', words),
    headers: section.templates('headers', [...words, 'key']),
    body,
    body_as,
    lists: section.choice('lists', list_forms) ?? 'repeat',
  };
}

/** A file is one field; everything else has fields of its own. */
function checkBody(section: Section, form: Call['body_as'], body: Json | undefined, words: readonly string[]): void {
  if (body === undefined) return;
  const is_word = words.some((word) => body === `$${word}`);
  if (form === 'file') {
    const is_field = typeof body === 'string' && /^\$input\.[A-Za-z0-9_]+$/.test(body);
    if (!is_field && !is_word) section.note('body', 'must be one field of the input, such as $input.audio');
  } else if (typeof body === 'string' && body !== '$input' && !is_word) {
    section.note('body', 'must be $input, or a mapping');
  }
}

function readCall(all: Section, field: string, words: readonly string[]): Call | undefined {
  const section = all.section(field, call_names);
  return section && callIn(section, words, 'GET');
}

function readStatus(all: Section, words: readonly string[]): Status | undefined {
  const section = all.section('status', [...call_names, ...phases, 'state', 'code', 'message']);
  if (!section) return undefined;
  const call = callIn(section, words, 'GET');
  const state = section.path('state', { required: true }) ?? [];
  const states = {
    waiting: section.words('waiting'),
    running: section.words('running'),
    done: section.words('done', { required: true }),
    failed: section.words('failed', { required: !looksAt(state, 'status') }),
    dropped: section.words('dropped'),
    unknown: section.words('unknown'),
  };
  const seen = new Set<string>();
  for (const phase of phases) {
    const twice = states[phase].find((word) => seen.has(word));
    if (twice !== undefined) section.note(phase, `has ${twice}, which means something else already`);
    for (const word of states[phase]) seen.add(word);
  }
  return { ...call, state, states, code: section.path('code'), message: section.path('message') };
}

function readCancel(all: Section, words: readonly string[]): Plan['cancel'] {
  const section = all.section('cancel', [...call_names, 'unbilled', 'look_first']);
  if (!section) return undefined;
  const unbilled = section.choice('unbilled', unbilled_choices) ?? 'waiting';
  return { ...callIn(section, words, 'POST'), unbilled, looks_first: section.flag('look_first') };
}

function readErrors(all: Section): Errors {
  const section = all.section('errors', ['code', 'message', 'ok', 'retry_after', ...meanings]);
  const words = (field: string) => section?.words(field) ?? [];
  if (section?.has('ok') === true && !section.has('code'))
    section.note('code', 'is required: ok is about what stands there');
  return {
    code: section?.path('code'),
    message: section?.path('message'),
    retry_after: section?.path('retry_after'),
    ok: section?.has('ok') === true ? section.words('ok', { may_be_empty: true }) : undefined,
    meanings: {
      moderation: words('moderation'),
      input: words('input'),
      credentials: words('credentials'),
      rate_limit: words('rate_limit'),
      unavailable: words('unavailable'),
      unknown: words('unknown'),
      failed: words('failed'),
    },
  };
}

const poll_usual = { min_ms: 1_000, max_ms: 10_000, per_minute: 600 };
const per_minute_max = 100_000;

/** Share of a minute's polls that may be made at once after a while without polls. */
const burst_share = 0.1;

function readPoll(all: Section): Plan['poll'] {
  const section = all.section('poll', ['min', 'max', 'per_minute']);
  const min_ms = section?.duration('min') ?? poll_usual.min_ms;
  const max_ms = section?.duration('max') ?? Math.max(min_ms, poll_usual.max_ms);
  if (min_ms > max_ms) section?.note('min', 'must not be longer than max');
  const per_minute = section?.count('per_minute', per_minute_max) ?? poll_usual.per_minute;
  return { min_ms, max_ms, rate_limit: { per_minute, burst: Math.max(1, Math.floor(per_minute * burst_share)) } };
}
