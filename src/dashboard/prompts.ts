import {
  addVersion,
  createPrompt,
  findPrompt,
  listPrompts,
  listVersions,
  prompts_max,
  removePrompt,
  renamePrompt,
} from '../accounts/prompts.ts';
import type { Db } from '../db/database.ts';
import { ApiError, invalidField } from '../errors.ts';
import { isId } from '../lib/ids.ts';
import { isRecord } from '../lib/is-record.ts';
import { readBodyFields } from './body-fields.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import type { PromptBody, PromptList, PromptView } from './views/playground.ts';

/** Prompts of the playground: all who belong to an account see them, and who may run models changes them. */

const name_max = 80;
const text_max = 100_000;
/** Of all of it as JSON. */
const body_max = 200_000;

const list_prompts = account_endpoint('GET', '/prompts', 'read', async ({ db }, { account }) => {
  const prompts = await listPrompts(db, account.id);
  const body: PromptList = {
    data: prompts.map(({ updated_at, ...line }) => ({ ...line, updated_at: updated_at.toISOString() })),
  };
  return { status: 200, body };
});

/** One of another account is not found, as one that never was. */
const get_prompt = account_endpoint(
  'GET',
  '/prompts/{id}',
  'read',
  async ({ db }, call) => ({ status: 200, body: await viewOf(db, call, versionIn(call)) }),
  { query: { version: { description: 'Its number; without it the latest.', schema: { type: 'integer' } } } },
);

const create_prompt = account_endpoint('POST', '/prompts', 'run', async ({ db, clock }, call) => {
  const { account_id, user_id } = authorOf(call);
  const fields = readBodyFields(call.body);
  const name = fields.text('name', name_max);
  const prompt = { account_id, user_id, name, body: JSON.stringify(readPrompt(call.body)) };
  const created = await createPrompt(db, prompt, new Date(clock.now()));
  if (created === 'name taken') throw nameTaken(name);
  if (created === 'too many')
    throw invalidField('name', `An account has at most ${prompts_max} prompts. Delete one first.`);
  return { status: 201, body: { id: created.id } };
});

/** Saves another version, another name, or both. A text that has not changed makes no version. */
const change_prompt = account_endpoint('POST', '/prompts/{id}', 'run', async ({ db, clock }, call) => {
  const { account_id, user_id } = authorOf(call);
  const id = idIn(call);
  const before = await findPrompt(db, { account_id, id });
  if (!before) throw notFound(id);
  const name = readBodyFields(call.body).optionalText('name', name_max);
  const body = call.body?.['prompt'] === undefined ? before.body : JSON.stringify(readPrompt(call.body));
  if (name !== undefined && name !== before.name) {
    const renamed = await renamePrompt(db, { account_id, id, name });
    if (renamed === 'name taken') throw nameTaken(name);
    if (renamed === undefined) throw notFound(id);
  }
  const is_changed = body !== before.body;
  const version = is_changed
    ? await addVersion(db, { account_id, id, user_id, body }, new Date(clock.now()))
    : before.version;
  if (version === undefined) throw notFound(id);
  return { status: 200, body: { id, version } };
});

const remove_prompt = account_endpoint('POST', '/prompts/{id}/remove', 'run', async ({ db }, call) => {
  await removePrompt(db, { account_id: authorOf(call).account_id, id: idIn(call) });
  return { status: 200, body: { ok: true } };
});

export const prompt_endpoints = [list_prompts, get_prompt, create_prompt, change_prompt, remove_prompt];

async function viewOf(db: Pick<Db, 'query'>, call: AccountCall, version: number | undefined): Promise<PromptView> {
  const id = idIn(call);
  const prompt = await findPrompt(db, { account_id: call.account.id, id, version });
  if (!prompt) throw notFound(id);
  const versions = await listVersions(db, id);
  return {
    ...prompt,
    updated_at: prompt.updated_at.toISOString(),
    body: readPrompt({ prompt: JSON.parse(prompt.body) }),
    versions: versions.map((each) => ({ ...each, created_at: each.created_at.toISOString() })),
  };
}

function readPrompt(body: Record<string, unknown> | undefined): PromptBody {
  const prompt = body?.['prompt'];
  if (!isRecord(prompt)) throw invalidField('prompt', 'prompt must be an object with model, system, text and fields.');
  const { model, system = '', text, fields = {} } = prompt;
  if (typeof model !== 'string' || model.length > 200)
    throw invalidField('prompt.model', 'model must be the id of a model.');
  if (!isText(system)) throw invalidField('prompt.system', `system must be a text of at most ${text_max} characters.`);
  if (!isText(text) || text.trim() === '')
    throw invalidField('prompt.text', `text must be a text of 1 to ${text_max} characters.`);
  if (!isRecord(fields)) throw invalidField('prompt.fields', 'fields must be an object.');
  const read = { model, system, text, fields };
  if (JSON.stringify(read).length <= body_max) return read;
  throw invalidField('prompt', `The prompt must have at most ${body_max} characters as JSON.`);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= text_max && value.isWellFormed() && !value.includes('\0');
}

function idIn({ params }: AccountCall): string {
  const { id = '' } = params;
  if (!isId('prompt', id)) throw notFound(id);
  return id;
}

function versionIn({ query }: AccountCall): number | undefined {
  const text = query.get('version');
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw invalidField('version', 'version must be a number.');
}

function notFound(id: string): ApiError {
  return new ApiError('not_found', `No prompt ${id.slice(0, 60)} in this account. It may have been deleted.`);
}

function nameTaken(name: string): ApiError {
  return invalidField(
    'name',
    `A prompt named “${name}” is there already. Choose another name, or save a version of that one.`,
  );
}

/** An operator who looks at an account of others leaves nothing there. */
function authorOf({ account, person }: AccountCall): { account_id: string; user_id: string } {
  if (person.role !== 'operator') return { account_id: account.id, user_id: person.user.id };
  throw new ApiError(
    'forbidden',
    'Your role here (operator) does not allow this. Members of the account save prompts.',
  );
}
