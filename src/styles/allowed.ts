import { tool_units, type Json, type JsonObject, type ToolUnit } from '../catalog/model.ts';
import { rememberByObject } from '../lib/remember.ts';
import type { Betas, ChatRequest, Members } from './codec.ts';
import { memberOf, isObject, mistake } from './fields.ts';

/**
 * Fields of a caller's body that may pass to an upstream of the same style, which gets the body as it came.
 * Two kinds are refused unless the route's options allow them: fields that cost the operator money which no
 * price row of the model covers, and ids in the operator's account upstream, by which one customer could read
 * another's data. Translated requests contain none of them.
 */

/** From the route's options. */
export type Allowance = {
  /** Names of the rules below that do not hold for this route. */
  pass: ReadonlySet<string>;
  /** Fields of the body that this route takes from nobody, beyond the rules. */
  refuse: ReadonlySet<string>;
  /** Members of the body that go on beyond those of the SDKs. */
  pass_fields: ReadonlySet<string>;
  /** Betas that go on beyond those that cost nothing but tokens. */
  pass_betas: ReadonlySet<string>;
  /** Tools that the route's upstream runs, and that callers may use where the model has a price for them. */
  hosted_tools: ReadonlySet<string>;
};

/** Checks a value: returns the problem, or undefined. */
type Check = (value: Json) => string | undefined;

const always =
  (problem: string): Check =>
  () =>
    problem;
const unlessOneOf =
  (values: readonly Json[], what: string): Check =>
  (value) =>
    values.includes(value) ? undefined : `must be ${values.join(', ')}: ${what}`;

const another_model = 'would choose another model, at another price';
const searching = 'would search at a price per use';
const elsewhere = 'refers to data in an account that is not yours';

/** Tiers at the usual price, or below it. */
export const usual_tiers: readonly Json[] = ['auto', 'default', 'standard', 'standard_only', 'on_demand', 'flex'];

/** Fields of the body, each with what is wrong with it. Names of rules are names of fields. */
const fields: { readonly [field: string]: Check } = {
  service_tier: unlessOneOf(usual_tiers, 'other tiers have separate prices'),
  speed: unlessOneOf(['standard'], 'faster answers have a separate price'),
  inference_geo: unlessOneOf(['global'], 'other regions have separate prices'),
  web_search_options: always(searching),
  search_parameters: always(searching),
  enable_search: unlessOneOf([false], searching),
  data_sources: always(searching),
  models: always(another_model),
  provider: always(another_model),
  plugins: always('would be run at a price per use'),
  fallbacks: always(another_model),
  fallback_credit_token: always(another_model),
  preset: always(another_model),
  billing_policy: always('would change what the call costs'),
  background: unlessOneOf([false], 'usage of background answers cannot be counted'),
  container: always(elsewhere),
  user_profile_id: always(elsewhere),
  workspace_id: always(elsewhere),
  access_programs: always(elsewhere),
  multi_agent: always('would run several models at once'),
  conversation: always(elsewhere),
  previous_response_id: always(elsewhere),
  prompt_cache_options: (value) =>
    isObject(value) && memberOf(value, 'comparison_response_id') !== undefined
      ? `must not have a comparison_response_id: it ${elsewhere}`
      : undefined,
  modalities: (value) =>
    Array.isArray(value) && value.every((each) => each === 'text')
      ? undefined
      : 'must be ["text"]: audio and images have separate prices',
};

/** Rules that are about more than a field of that name. */
const others = ['tools', 'input_audio', 'file_id', 'store', 'cache_ttl'] as const;

/** Names that `pass` may list. */
export const pass_names: readonly string[] = [...Object.keys(fields), ...others];

/** Returns the allowance of a route, by its options. */
export const allowanceOf = rememberByObject((options: JsonObject) => readAllowance(options).allowance);

/** Reads `pass` and `refuse` among the options of a route, and tells what is wrong with them. */
export function readAllowance(options: JsonObject): {
  allowance: Allowance;
  problems: { field: string; message: string; known_names?: readonly string[] }[];
} {
  const problems = [];
  const pass = textsOf(options['pass']);
  const refuse = textsOf(options['refuse']);
  const pass_fields = textsOf(options['pass_fields']);
  const pass_betas = textsOf(options['pass_betas']);
  const hosted_tools = textsOf(options['hosted_tools']);
  if (!pass) problems.push({ field: 'pass', message: 'must be a list of names' });
  if (!refuse) problems.push({ field: 'refuse', message: 'must be a list of names of fields' });
  if (!pass_fields) problems.push({ field: 'pass_fields', message: 'must be a list of names of fields' });
  if (!pass_betas) problems.push({ field: 'pass_betas', message: 'must be a list of names of betas' });
  if (!hosted_tools?.every((name) => tool_units.some((unit) => unit === name)))
    problems.push({ field: 'hosted_tools', message: `must be a list of these: ${tool_units.join(', ')}` });
  const unknown = (pass ?? []).filter((name) => !pass_names.includes(name));
  for (const name of unknown) {
    problems.push({ field: 'pass', message: `${JSON.stringify(name)} is no rule`, known_names: pass_names });
  }
  const allowance = {
    pass: new Set(pass),
    refuse: new Set(refuse),
    pass_fields: new Set(pass_fields),
    pass_betas: new Set(pass_betas),
    hosted_tools: new Set(hosted_tools),
  };
  return { allowance, problems };
}

function textsOf(value: Json | undefined): string[] | undefined {
  if (value === undefined) return [];
  if (!Array.isArray(value)) return undefined;
  const texts = value.filter((each) => typeof each === 'string');
  return texts.length === value.length ? texts : undefined;
}

/**
 * Refuses the fields that the route refuses from everybody, whatever its upstream speaks. Throws ApiError 400
 * naming the field.
 */
export function refuseFields(body: JsonObject, { refuse }: Allowance): void {
  for (const field of refuse) {
    if (memberOf(body, field) !== undefined) throw refusal(field, 'is not offered with this model');
  }
}

/**
 * The body without what may be left out unnoticed, and without members that no SDK of the style defines. Throws
 * ApiError 400 naming the field for the rest of what must not go on.
 */
export function allowedBody(members: Members, body: JsonObject, allowance: Allowance): JsonObject {
  const { pass } = allowance;
  for (const field in body) {
    const check = Object.hasOwn(fields, field) ? fields[field] : undefined;
    const value = body[field] ?? null;
    if (!check || value === null || pass.has(field) || members.left_out?.has(field)) continue;
    const problem = check(value);
    if (problem !== undefined) throw refusal(field, problem);
  }
  if (!pass.has('tools')) checkTools(body['tools'], allowance);
  checkParts(body, pass);
  checkGemini(body, pass);
  const allowed = withoutUnknown(members, body, allowance);
  return withoutStore(allowed, pass);
}

function withoutUnknown(members: Members, body: JsonObject, allowance: Allowance): JsonObject {
  const unknown = Object.keys(body).filter((field) => !isKnown(members, field, allowance));
  if (unknown.length === 0) return body;
  const allowed = { ...body };
  for (const field of unknown) delete allowed[field];
  return allowed;
}

function isKnown(members: Members, field: string, { pass, pass_fields }: Allowance): boolean {
  if (pass_fields.has(field) || (pass.has(field) && Object.hasOwn(fields, field))) return true;
  if (withheld_members.has(field)) return false;
  return members.sdk.has(field) || members.vendor.has(field);
}

/** Members that SDKs define, and that name what lies in an account upstream: its customers share none of it. */
const withheld_members: ReadonlySet<string> = new Set(['diagnostics']);

/** Members of a body that go on to none of these routes. Nulls are nothing that anybody misses. */
export function ignoredFields(members: Members, body: JsonObject, allowances: readonly Allowance[]): string[] {
  return Object.keys(body).filter(
    (field) =>
      body[field] !== null &&
      members.own?.has(field) !== true &&
      !allowances.some((allowance) => isKnown(members, field, allowance)),
  );
}

/** The betas of a header that go on; `has_long_prices`: of the model, for prompts above a length. */
export function allowedBetas(
  { allowed, long_context }: Betas,
  header: string,
  { pass_betas }: Allowance,
  has_long_prices: boolean,
): string[] {
  return betasIn(header).filter(
    (beta) => allowed.has(beta) || pass_betas.has(beta) || (has_long_prices && long_context.test(beta)),
  );
}

export function betasIn(header: string): string[] {
  return header
    .split(',')
    .map((beta) => beta.trim())
    .filter((beta) => beta !== '');
}

/** A request with such a body; the same object where nothing had to be changed. */
export function allowedRequest(request: ChatRequest, allowance: Allowance): ChatRequest {
  const body = allowedBody(request.style.caller.members, request.body, allowance);
  return body === request.body ? request : { ...request, body };
}

/**
 * Tools that the caller runs itself, or whose work is all in the tokens. Whatever else a provider runs may
 * have a price per use: a search costs as much as 4,000 tokens.
 */
const tools_covered =
  /^(?:function|custom|namespace|local_shell|shell|apply_patch|bash_|text_editor_|computer|memory_|browser_|tool_search|web_fetch_|mcp_toolset)/;

/** Tells whether a tool costs nothing but tokens. */
export function isCovered({ type, environment }: JsonObject): boolean {
  if (typeof type !== 'string') return true;
  return tools_covered.test(type) && (type !== 'shell' || isLocal(environment));
}

/** The unit in which a provider bills its own tool; undefined for others, and where it would use what is stored there. */
export function toolUnit({ type, container }: JsonObject): ToolUnit | undefined {
  if (typeof type !== 'string') return undefined;
  if (type.startsWith('web_search')) return 'web_search';
  const is_new = isObject(container) && container['type'] === 'auto' && (container['file_ids'] ?? null) === null;
  return type === 'code_interpreter' && is_new ? 'code_interpreter' : undefined;
}

/** A shell runs with the caller unless it names a container. */
function isLocal(environment: Json | undefined): boolean {
  return (environment ?? null) === null || (isObject(environment) && environment['type'] === 'local');
}

function checkTools(tools: Json | undefined, { hosted_tools }: Allowance): void {
  if (!Array.isArray(tools)) return;
  for (const [index, tool] of tools.entries()) {
    const unit = isObject(tool) ? toolUnit(tool) : undefined;
    if (unit === undefined || !hosted_tools.has(unit)) checkTool(tool, `tools[${index}]`);
  }
}

function checkTool(tool: Json | undefined, at: string): void {
  if (!isObject(tool) || isCovered(tool)) return;
  const type = String(tool['type']).slice(0, 64);
  throw refusal(`${at}.type`, `${JSON.stringify(type)} is run by the provider at a price per use`);
}

/** Tools that a block of a conversation defines, as an entry of `tools` does: one alone, or a compaction's list of them. */
function checkAddedTools({ tool, tool_changes }: JsonObject, at: string): void {
  if (isObject(tool)) checkTool(tool['definition'], `${at}.tool.definition`);
  if (!Array.isArray(tool_changes)) return;
  for (const [index, change] of tool_changes.entries()) {
    if (isObject(change)) checkAddedTools(change, `${at}.tool_changes[${index}]`);
  }
}

function checkParts(body: JsonObject, pass: ReadonlySet<string>): void {
  const { messages } = body;
  if (!Array.isArray(messages) || ['input_audio', 'file_id', 'tools'].every((rule) => pass.has(rule))) return;
  for (const [index, message] of messages.entries()) {
    if (!isObject(message)) continue;
    const at = `messages[${index}]`;
    if (!pass.has('file_id') && isObject(message['audio']) && memberOf(message['audio'], 'id') !== undefined) {
      throw refusal(`${at}.audio.id`, elsewhere);
    }
    checkContent(message['content'], `${at}.content`, pass);
  }
}

function checkContent(content: Json | undefined, at: string, pass: ReadonlySet<string>): void {
  if (!Array.isArray(content)) return;
  for (const [index, part] of content.entries()) {
    if (!isObject(part)) continue;
    const here = `${at}[${index}]`;
    if (part['type'] === 'input_audio' && !pass.has('input_audio')) {
      throw refusal(`${here}.input_audio`, 'has a separate price, as audio');
    }
    if (!pass.has('file_id')) checkFile(part, here);
    if (!pass.has('tools')) checkAddedTools(part, here);
    checkContent(part['content'], `${here}.content`, pass);
    if (isObject(part['source'])) checkContent(part['source']['content'], `${here}.source.content`, pass);
  }
}

/** Gemini's own names for what the rules are about. */
function checkGemini(
  { contents, cachedContent, serviceTier, generationConfig }: JsonObject,
  pass: ReadonlySet<string>,
): void {
  if ((cachedContent ?? null) !== null && !pass.has('file_id')) throw refusal('cachedContent', elsewhere);
  const tier = serviceTier ?? null;
  if (tier !== null && !pass.has('service_tier') && !usual_tiers.includes(tier))
    throw refusal('serviceTier', `must be ${usual_tiers.join(', ')}: other tiers have separate prices`);
  const modalities = isObject(generationConfig) ? generationConfig['responseModalities'] : undefined;
  const is_more = Array.isArray(modalities) && modalities.some((each) => String(each).toUpperCase() !== 'TEXT');
  if (is_more && !pass.has('modalities'))
    throw refusal('generationConfig.responseModalities', 'must be ["TEXT"]: audio and images have separate prices');
  if (!Array.isArray(contents) || pass.has('input_audio')) return;
  for (const [index, content] of contents.entries())
    if (isObject(content)) checkAudio(content['parts'], `contents[${index}].parts`);
}

function checkAudio(parts: Json | undefined, at: string): void {
  if (!Array.isArray(parts)) return;
  for (const [index, part] of parts.entries()) {
    if (!isObject(part)) continue;
    for (const holder of ['inlineData', 'fileData'] as const) {
      const file = part[holder];
      const type = isObject(file) ? file['mimeType'] : undefined;
      if (typeof type === 'string' && /^\s*audio\//i.test(type))
        throw refusal(`${at}[${index}].${holder}`, 'has a separate price, as audio');
    }
    const { functionResponse: result } = part;
    if (isObject(result)) checkAudio(result['parts'], `${at}[${index}].functionResponse.parts`);
  }
}

/** Checks the file of a part: in the part itself, in the `source` of a block, or in the `file` of a part. */
function checkFile(part: JsonObject, at: string): void {
  if (memberOf(part, 'file_id') !== undefined) throw refusal(`${at}.file_id`, elsewhere);
  for (const holder of ['file', 'source', 'image_url'] as const) {
    const inner = part[holder];
    if (isObject(inner) && memberOf(inner, 'file_id') !== undefined)
      throw refusal(`${at}.${holder}.file_id`, elsewhere);
  }
}

/** Answers are kept here by nobody; an upstream that keeps none refuses the `metadata` of those it keeps. */
function withoutStore(body: JsonObject, pass: ReadonlySet<string>): JsonObject {
  if (pass.has('store') || memberOf(body, 'store') !== true) return body;
  const { store: _, metadata: __, ...rest } = body;
  return rest;
}

function refusal(at: string, problem: string): Error {
  return mistake(at, problem, 'unsupported_field');
}
