import type { Json, JsonObject } from '../../../catalog/model.ts';
import { inPath } from '../../http/answers.ts';
import type { Answer, Upstream } from '../../http/http.ts';
import type { OwnTexts } from '../../http/own-texts.ts';
import { InputRefused, NotStarted, type InputFiles, type RunContext, type RunRequest } from '../../provider.ts';
import { firstIn } from './answer-place.ts';
import { encodeBody, isFileText } from './body.ts';
import { refusalIn, troubleIn } from './judge.ts';
import type { Call, Plan } from './plan.ts';
import { fill, fillAll, fillBody, wordsOf, type Words } from './template.ts';

/** The parts of a call: the provider's and the route's. */
export type CallContext = {
  upstream: Upstream;
  base_url: string;
  key: string | undefined;
  /** Headers and query that the operator adds to every request. */
  texts: OwnTexts;
  plan: Plan;
  run: RunContext;
  signal: AbortSignal;
};

/** Values for the templates of one call. */
export type CallValues = {
  /** It is about a run that exists. */
  is_read: boolean;
  id?: string | undefined;
  events_url?: string | undefined;
  /** Fields of the input; of later calls those that they name. */
  input?: JsonObject;
  files?: InputFiles;
  /** Values of the answer to the submit. */
  saved?: JsonObject;
  /** The text of the file that is handed over. */
  file?: string;
};

const no_files: InputFiles = new Map();

/** Makes one call as the options describe it. The key goes into headers only, and to the provider's own host only. */
export async function call(context: CallContext, step: Call, values: CallValues): Promise<Answer> {
  const { upstream, plan, run, key, signal } = context;
  const { input = {}, files = no_files } = values;
  const words = wordsFor(run, values);
  const path = fill(step.path, words, inAddress);
  if (path === undefined) throw missingWord();
  const headers = { accept: 'application/json', ...plan.headers, ...step.headers };
  const body = step.body === undefined ? undefined : fillBody(step.body, input, words);
  const encoded = encodeBody(step, body, files);
  return upstream.call({
    method: step.method,
    is_read: values.is_read,
    path,
    query: fillAll(step.query, words),
    signal,
    rate_limit: plan.poll.rate_limit,
    answer_bytes_max,
    ...encoded,
    headers: { ...encoded.headers, ...fillAll(headers, { ...words, key }, inHeader) },
  });
}

/** Files may be within the answer, as base64. */
const answer_bytes_max = 64 * 1_048_576;

function wordsFor(run: RunContext, { id, events_url, input = {}, saved = {}, file }: CallValues): Words {
  return {
    ...wordsOf('input', input),
    ...wordsOf('saved', saved),
    model: run.model,
    task_id: run.task_id,
    id,
    events_url,
    file,
  };
}

/** Longer than any name, and as much as servers take in a part of a path. */
const in_address_max = 1_000;

/**
 * A value in the path of an address. A model may be `owner/name`; every other value is one part of the path, whatever is
 * in it. Throws InputRefused for a field of the input that would lead elsewhere.
 */
function inAddress(value: string, name: string): string {
  if (name === 'model') return inPath(value);
  const encoded = encodeURIComponent(value.toWellFormed());
  const is_one_part = value !== '' && !/^\.{1,2}$/.test(value) && encoded.length <= in_address_max;
  if (is_one_part) return encoded;
  if (name.startsWith('input.')) {
    throw new InputRefused(
      'invalid_request',
      `${name} cannot stand in an address: it is empty, only dots, or too long.`,
    );
  }
  throw new Error(`$${name} cannot stand in an address`);
}

/** Headers take printable ASCII. */
function inHeader(value: string, name: string): string {
  if (!name.startsWith('input.') || /^[\x20-\x7e]{0,4096}$/.test(value)) return value;
  throw new InputRefused('invalid_request', `${name} may only have printable ASCII characters, at most 4096.`);
}

/** Nothing is sent to half an address. */
function missingWord(): NotStarted {
  const message = 'the path of a call names a field that the input does not have';
  return new NotStarted('refused', message, { is_not_route_fault: true });
}

/** They are stored with the run. */
const later_length_max = 4_096;

/**
 * Returns the fields of the input that later calls name, or throws what `call` would: a run whose state nobody can ask
 * for is not begun.
 */
export function laterFields({ plan, run }: CallContext, input: JsonObject): JsonObject {
  const entries = plan.later_fields.flatMap((name): [string, Json][] =>
    Object.hasOwn(input, name) ? [[name, input[name] ?? null]] : [],
  );
  const long = entries.find(([, value]) => typeof value === 'string' && value.length > later_length_max);
  if (long)
    throw new InputRefused('invalid_request', `input.${long[0]} may have at most ${later_length_max} characters.`);
  const fields = Object.fromEntries(entries);
  const saved = Object.fromEntries(Object.keys(plan.save).map((name) => [name, name]));
  const words = wordsFor(run, { is_read: true, id: 'id', input: fields, saved });
  for (const step of [plan.status, plan.result, plan.cancel]) {
    if (!step) continue;
    if (fill(step.path, words, inAddress) === undefined) throw missingWord();
    fillAll(step.headers, words, inHeader);
  }
  return fields;
}

/**
 * The input with what the upstream gives for each of its files, which are handed over before the submit. Throws NotStarted
 * or InputRefused, never that it is unclear: a file alone starts nothing.
 */
export async function uploadFiles(context: CallContext, { input, files = no_files }: RunRequest): Promise<JsonObject> {
  const { upload } = context.plan;
  if (!upload) return input;
  const values = new Map<string, Json>();
  const replace = async (value: Json): Promise<Json> => {
    if (Array.isArray(value)) {
      const items: Json[] = [];
      for (const item of value) items.push(await replace(item));
      return items;
    }
    if (typeof value !== 'string' || !isFileText(value, files)) return value;
    const uploaded = values.get(value) ?? (await uploadFile(context, upload, value, { input, files }));
    values.set(value, uploaded);
    return uploaded;
  };
  const members: [string, Json][] = [];
  for (const [name, value] of Object.entries(input)) members.push([name, await replace(value)]);
  return Object.fromEntries(members);
}

async function uploadFile(
  context: CallContext,
  upload: NonNullable<Plan['upload']>,
  file: string,
  { input, files }: { input: JsonObject; files: InputFiles },
): Promise<Json> {
  const { upstream, plan } = context;
  try {
    const answer = await call(context, upload, { is_read: false, input, files, file });
    const trouble = troubleIn(answer, plan.errors);
    if (trouble) throw upstream.refusal(refusalIn(answer, trouble, plan.errors), { is_synchronous: true });
    const value = firstIn(answer, upload.value);
    if (value === undefined) throw new Error('the answer to the upload of a file names no file');
    return value;
  } catch (error) {
    if (error instanceof NotStarted || error instanceof InputRefused || context.signal.aborted) throw error;
    const message = `a file could not be handed over: ${error instanceof Error ? error.message : String(error)}`;
    throw new NotStarted('unavailable', message, { cause: error });
  }
}
