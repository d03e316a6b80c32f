import type { OptionProblem } from '../../../catalog/check-settings.ts';
import type { Json, JsonObject, Unit } from '../../../catalog/model.ts';
import type { AnswerPath } from '../../http/answer-path.ts';
import type { RateLimit } from '../../../concurrency/token-bucket.ts';
import { costProblems } from '../../http/upstream-cost.ts';
import type { PollInterval } from '../../http/poll-state.ts';
import { Section } from './section.ts';
import type { Word } from './template.ts';

/** The protocol of an upstream, from the options of a route. */
export type Plan = {
  headers: Record<string, string>;
  /** Without `id` the submit answers with the files. */
  submit: Call & { id: AnswerPath | undefined };
  status: Status | undefined;
  /** The request for the files, if they are not in the response that reports the end of the run. */
  result: Call | undefined;
  cancel: (Call & { unbilled: (typeof unbilled_choices)[number] }) | undefined;
  errors: Errors;
  units: { [unit in (typeof reported_units)[number]]?: AnswerPath };
  cost: { [kind in (typeof reported_costs)[number]]?: AnswerPath };
  poll: PollInterval & { rate_limit: RateLimit };
};

export type Call = {
  method: (typeof methods)[number];
  path: string;
  query: Record<string, string>;
  headers: Record<string, string>;
  body: Json | undefined;
};

export type Status = Call & {
  state: AnswerPath;
  states: { readonly [phase in (typeof phases)[number]]: readonly string[] };
  code: AnswerPath | undefined;
  message: AnswerPath | undefined;
};

/** Positions of codes and messages of errors in responses, and their meanings. */
export type Errors = {
  code: AnswerPath | undefined;
  message: AnswerPath | undefined;
  /** Codes of answers in which nothing is wrong; none: the HTTP status alone decides. */
  ok: readonly string[];
  meanings: { readonly [meaning in Meaning]: readonly string[] };
};

const methods = ['GET', 'POST', 'PUT', 'DELETE'] as const;
const phases = ['waiting', 'running', 'done', 'failed', 'dropped'] as const;
const unbilled_choices = ['waiting', 'always', 'never'] as const;
export const reported_units = ['second', 'character', 'input_token', 'output_token'] as const satisfies readonly Unit[];
const reported_costs = ['amount', 'credits'] as const;

/** In the order in which they are looked for. */
export const meanings = ['moderation', 'input', 'credentials', 'rate_limit', 'unavailable', 'failed'] as const;

export type Meaning = (typeof meanings)[number];

const option_names = [
  'headers',
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
const call_names = ['method', 'path', 'query', 'headers', 'body'];

const before: readonly Word[] = ['model', 'task_id', 'events_url'];
const after: readonly Word[] = ['model', 'task_id', 'id'];

/** Reads the options of a route; with problems, the plan is not to be used. */
export function readPlan(options: JsonObject): { plan: Plan | undefined; problems: OptionProblem[] } {
  const problems: OptionProblem[] = [];
  const all = new Section(options, ['options'], problems, option_names);
  const submit = readSubmit(all);
  const status = readStatus(all);
  const result = readCall(all, 'result');
  const cancel = readCancel(all);
  if (!status && (submit?.id !== undefined || result || cancel)) {
    all.note('status', 'is required: runs with an id are asked for their state');
  }
  const headers = all.has('headers') ? all.templates('headers', ['key']) : { authorization: 'Bearer $key' };
  const errors = readErrors(all);
  const units = all.paths('units', reported_units);
  const cost = all.paths('cost', reported_costs);
  const poll = readPoll(all);
  problems.push(...costProblems(options));
  const plan = submit && { headers, submit, status, result, cancel, errors, units, cost, poll };
  return { plan, problems };
}

function readSubmit(all: Section): Plan['submit'] | undefined {
  const section = all.section('submit', [...call_names, 'id']);
  if (!section) {
    return all.has('submit') ? undefined : all.note('submit', 'is required: how a run is started');
  }
  const call = callIn(section, before, 'POST');
  const body = call.method === 'GET' ? undefined : (call.body ?? '$input');
  return { ...call, body, id: section.path('id', { required: all.has('status') }) };
}

function callIn(section: Section, words: readonly Word[], usual: Call['method']): Call {
  return {
    method: section.choice('method', methods) ?? usual,
    path: section.place(
      'path',
      words.filter((word) => word !== 'events_url'),
    ),
    query: section.templates('query', words),
    headers: section.templates('headers', [...words, 'key']),
    body: section.body('body', words),
  };
}

function readCall(all: Section, field: string): Call | undefined {
  const section = all.section(field, call_names);
  return section && callIn(section, after, 'GET');
}

function readStatus(all: Section): Status | undefined {
  const section = all.section('status', [...call_names, ...phases, 'state', 'code', 'message']);
  if (!section) return undefined;
  const call = callIn(section, after, 'GET');
  const state = section.path('state', { required: true }) ?? [];
  const states = {
    waiting: section.words('waiting'),
    running: section.words('running'),
    done: section.words('done', { required: true }),
    failed: section.words('failed', { required: true }),
    dropped: section.words('dropped'),
  };
  const seen = new Set<string>();
  for (const phase of phases) {
    const twice = states[phase].find((word) => seen.has(word));
    if (twice !== undefined) section.note(phase, `has ${twice}, which means something else already`);
    for (const word of states[phase]) seen.add(word);
  }
  return { ...call, state, states, code: section.path('code'), message: section.path('message') };
}

function readCancel(all: Section): Plan['cancel'] {
  const section = all.section('cancel', [...call_names, 'unbilled']);
  if (!section) return undefined;
  return { ...callIn(section, after, 'POST'), unbilled: section.choice('unbilled', unbilled_choices) ?? 'waiting' };
}

function readErrors(all: Section): Errors {
  const section = all.section('errors', ['code', 'message', 'ok', ...meanings]);
  const words = (field: string) => section?.words(field) ?? [];
  if (section?.has('ok') === true && !section.has('code'))
    section.note('code', 'is required: ok is about what stands there');
  return {
    code: section?.path('code'),
    message: section?.path('message'),
    ok: words('ok'),
    meanings: {
      moderation: words('moderation'),
      input: words('input'),
      credentials: words('credentials'),
      rate_limit: words('rate_limit'),
      unavailable: words('unavailable'),
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
