import type { Json, JsonObject } from '../catalog/model.ts';
import { checkUserUrl, type AddressRules } from '../net/address.ts';
import { isObject, mistake } from './fields.ts';

/**
 * Links in what a caller says. Whoever answers may fetch them, from wherever it stands: an upstream in the operator's own
 * network reaches what no caller may reach. They are found by what their members are called, also in parts that we do
 * not know.
 */

/** `place`: the way to it in the body. `server`: what is there is spoken to, not fetched. */
export type BodyLink = { url: string; at: string; place: readonly (string | number)[]; kind: 'file' | 'server' };

/** A downloaded file of a link, in base64. */
export type FetchedFile = { mimeType: string; data: string };

/** All links of a request, in their order. */
export function findLinks(body: JsonObject): BodyLink[] {
  const links: BodyLink[] = [];
  const place: (string | number)[] = [];
  // No style has a link at the top: what stands there is left out as unknown, such as a `webhook_url`.
  for (const key in body)
    if (!unread.has(key) && typeof body[key] !== 'string') findIn(body[key], { name: key, step: key }, place, links);
  return links;
}

/** Members that hold no links that anybody follows: schemas, labels, and what a model or its tools wrote. */
const unread: ReadonlySet<string> = new Set([
  'model',
  'metadata',
  'user',
  'parameters',
  'input_schema',
  'output_schema',
  'input_examples',
  'schema',
  'json_schema',
  'arguments',
  'annotations',
  'citations',
  'action',
  'actions',
  'operation',
  'current_url',
  'logprobs',
  'text',
  'instructions',
  'parametersJsonSchema',
  'responseJsonSchema',
  'responseSchema',
  'functionCall',
  'safetySettings',
]);

/** Types of web results that are sent back. */
const web_sources = /^(url_citation|web_search_result|web_fetch_result|web_search_call|browser_state)$/;
const source_links = /^(url|source|current_url)$/;

/** Types of calls, whose `input` the model wrote for a tool. */
const calls = /(^|_)(tool_use|call)$/;

/** Members of an object that are what a tool found out: Gemini's results have no type. */
const results: ReadonlySet<string> = new Set(['functionResponse']);

/** Some upstreams read `URL` and `Image_Url` as the names that they look for. */
const link_names = /(^|_)(url|uri)s?$|[a-z](Url|Uri)s?$/i;
const data_names: ReadonlySet<string> = new Set([
  'file_data',
  'data',
  'image',
  'images',
  'video',
  'videos',
  'audio',
  'audios',
]);

/** Start of a text that leads elsewhere; bytes in base64 never match. */
const scheme = /^\s*[a-z][a-z0-9+.-]*:/i;

/** `step`: the last one of the way to the value; `name`: the last of the way that is no index. */
type At = { name: string; step: string | number };

function findIn(value: Json | undefined, at: At, place: (string | number)[], links: BodyLink[]): void {
  place.push(at.step);
  if (typeof value === 'string') note(value, at.name, place, links);
  else if (Array.isArray(value)) findInItems(value, at.name, place, links);
  else if (isObject(value)) findInMembers(value, at.name, place, links);
  place.pop();
}

/** A million lists in lists took 0.3 s when each looked for the name on its way. */
function findInItems(items: readonly Json[], name: string, place: (string | number)[], links: BodyLink[]): void {
  for (let step = 0; step < items.length; step++) {
    const item = items[step];
    if (typeof item === 'string' || typeof item === 'object') findIn(item, { name, step }, place, links);
  }
}

function findInMembers(holder: JsonObject, own_name: string, place: (string | number)[], links: BodyLink[]): void {
  const type = typeof holder['type'] === 'string' ? holder['type'] : '';
  const is_call = calls.test(type);
  const is_source = web_sources.test(type);
  for (const name in holder) {
    if (unread.has(name) || (is_call && name === 'input') || (type === 'text' && name === 'data')) continue;
    if (name === 'response' && results.has(own_name)) continue;
    const member = holder[name];
    if (typeof member === 'string' && ((is_source && source_links.test(name)) || !isHolder(name))) continue;
    findIn(member, { name, step: name }, place, links);
  }
}

function isHolder(name: string): boolean {
  return link_names.test(name) || data_names.has(name.toLowerCase());
}

function note(text: string, name: string, place: readonly (string | number)[], links: BodyLink[]): void {
  if (text === '' || !isHolder(name)) return;
  const is_server = name.toLowerCase() === 'server_url' || place[0] === 'mcp_servers';
  const may_be_inline = !is_server && place.at(-2) !== 'source'; // messages have a source of its own for bytes
  if (may_be_inline && /^\s*data:/i.test(text)) return;
  if (!link_names.test(name) && !scheme.test(text)) return;
  links.push({ url: text, at: pathOf(place), place: [...place], kind: is_server ? 'server' : 'file' });
}

function pathOf(place: readonly (string | number)[]): string {
  return place
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`))
    .join('');
}

/** Throws ApiError 400 naming the first link that nobody may follow by these rules, whoever does it. */
export function judgeLinks(links: readonly BodyLink[], rules: AddressRules): void {
  for (const { url, at } of links) {
    const problem = problemOf(url, rules);
    if (problem !== undefined) throw mistake(at, problem.replace(/\.$/, ''), 'link_not_allowed');
  }
}

/** Readers differ in what they take for the host of `http:\\a` and `http://a\@b`: only what all read alike goes on. */
const plain_link = /^https?:\/\/[^/\\?#@]+([/?#][^\\]*)?$/i;

const link_length_max = 8_192;

function problemOf(url: string, rules: AddressRules): string | undefined {
  if (url.length > link_length_max) return `must be at most ${link_length_max} characters`;
  const problem = checkUserUrl(url, rules);
  if (problem !== undefined) return problem;
  return plain_link.test(url) ? undefined : 'must be a plain http(s) URL, without a user name and without backslashes';
}

/** A file for the value at a place of a body. */
export type Replacement = { place: BodyLink['place']; put: (value: Json) => Json };

/**
 * The body with the files in place of their links, in the words of the caller's style: as `replaceLink` says, or as data
 * URLs. A member `file_url` changes its name.
 */
export function withFiles(
  body: JsonObject,
  files: readonly { link: BodyLink; file: FetchedFile }[],
  replaceLink: (link: BodyLink, file: FetchedFile) => Replacement | undefined = () => undefined,
): JsonObject {
  let changed: Json = body;
  for (const { link, file } of files) {
    const { place, put } = replaceLink(link, file) ?? dataUrlAt(link, file);
    changed = changedAt(changed, place, put);
  }
  return isObject(changed) ? changed : body;
}

function dataUrlAt({ place }: BodyLink, file: FetchedFile): Replacement {
  if (place.at(-1) === 'file_url') return { place: place.slice(0, -1), put: fileOf(file) };
  return { place, put: () => dataUrl(file) };
}

function dataUrl({ mimeType, data }: FetchedFile): string {
  return `data:${mimeType};base64,${data}`;
}

/** By its name an upstream knows what the bytes are. */
function fileOf(file: FetchedFile): (holder: Json) => Json {
  return (holder) => {
    if (!isObject(holder)) return holder;
    const { file_url, filename, ...rest } = holder;
    return { ...rest, filename: filename ?? nameIn(file_url), file_data: dataUrl(file) };
  };
}

function nameIn(url: Json | undefined): string {
  const name = typeof url === 'string' && URL.canParse(url) ? new URL(url).pathname.split('/').at(-1) : undefined;
  return name === undefined || name === '' ? 'document' : name.slice(-128);
}

/** The body with another value at a place; the rest are the objects that they were. */
export function replacedAt(body: JsonObject, place: BodyLink['place'], put: (value: Json) => Json): JsonObject {
  const changed = changedAt(body, place, put);
  return isObject(changed) ? changed : body;
}

/** A copy in which one value is another; the rest are the objects that they were. */
function changedAt(value: Json, place: readonly (string | number)[], put: (value: Json) => Json): Json {
  const [step, ...further] = place;
  if (step === undefined) return put(value);
  if (Array.isArray(value)) {
    return value.map((each, index) => (index === step ? changedAt(each, further, put) : each));
  }
  if (!isObject(value)) return value;
  return { ...value, [step]: changedAt(value[step] ?? null, further, put) };
}
