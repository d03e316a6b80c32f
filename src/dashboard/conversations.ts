import { keepDaysMax } from '../catalog/settings.ts';
import {
  deletePlayground,
  findOwner,
  isPlaygroundId,
  listPlayground,
  playground_bounds,
  readPlayground,
  readPlaygroundFile,
  removePlayground,
  savePlayground,
  savePlaygroundFile,
  switchPlayground,
  type NotStored,
} from '../contents/playground.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import { undecryptable, type ContentKeys } from '../db/content.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { ApiError, invalidField } from '../errors.ts';
import { counted } from '../lib/counted.ts';
import { isRecord } from '../lib/is-record.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import { ownerIn } from './saved-views.ts';
import type { ConversationChanges, ConversationFile, StoredConversation } from './views/playground.ts';

/**
 * Conversations of the playground on the server, for people who switched that on: each person's own, whoever else is in
 * the account. What browsers send is opaque here.
 */

const { line_bytes_max, turns_bytes_max, files_bytes_max, total_bytes_max, conversations_max } = playground_bounds;

/** The texts come as strings of JSON, in which each quote of theirs is two characters. */
const turns_body_max = 2 * (turns_bytes_max + line_bytes_max) + 100_000;
const file_body_max = Math.ceil((files_bytes_max * 4) / 3) + 100_000;
const files_max = 1_000;

const whose = { person: { description: 'The person whose page asks.', schema: { type: 'string' } } };
const own = { limited: 'same', query: whose } as const;

const list_conversations = account_endpoint('GET', '/conversations', 'run', list, {
  limited: 'same',
  query: { ...whose, since: { description: 'Only changes after this version.', schema: { type: 'integer' } } },
});

async function list(app: ConversationParts, call: AccountCall) {
  const owner = ownerOf(call);
  const state = await findOwner(app.db, owner);
  const days = daysOf(app, call);
  const is_on = state !== undefined && state.is_on && days > 0;
  const since = sinceIn(call);
  const now = new Date(app.clock.now());
  const page = is_on ? await listPlayground(app, owner, since, now) : { lines: [], has_more: false };
  const body: ConversationChanges = {
    days,
    is_encrypted: app.content_keys.current !== undefined,
    is_on,
    epoch: state?.epoch ?? null,
    data: page.lines.map(({ line, ...facts }) => ({ ...facts, line: line ?? null })),
    has_more: page.has_more,
  };
  return { status: 200, body };
}

/** Switches it on, or off: then `remove` says whether what is on the server goes. */
const switch_conversations = account_endpoint('PUT', '/conversations', 'run', setChoice, own);

async function setChoice(app: ConversationParts, call: AccountCall) {
  const owner = ownerOf(call);
  const { is_on, remove = false } = call.body ?? {};
  if (typeof is_on !== 'boolean') throw invalidField('is_on', 'is_on must be true or false.');
  if (typeof remove !== 'boolean') throw invalidField('remove', 'remove must be true or false.');
  if (is_on && remove) throw invalidField('remove', 'Only what is switched off can be removed.');
  if (is_on) checkOffered(app, call);
  if (remove) await removePlayground(app.db, owner);
  else await switchPlayground(app.db, owner, is_on, new Date(app.clock.now()));
  return { status: 200, body: { ok: true } };
}

const get_conversation = account_endpoint('GET', '/conversations/{id}', 'run', read, own);

async function read(app: ConversationParts, call: AccountCall) {
  const name = nameOf(call);
  const stored = await readPlayground(app, name, new Date(app.clock.now()));
  if (stored === 'deleted') throw deleted();
  if (stored === 'absent') throw notFound();
  if (stored === 'unreadable') throw new ApiError('not_found', undecryptable);
  const body: StoredConversation = stored;
  return { status: 200, body };
}

/** Saves one: refused with 409 if it is not at the version any more that the browser knew. */
const put_conversation = account_endpoint('PUT', '/conversations/{id}', 'run', save, {
  ...own,
  body_limit_bytes: turns_body_max,
});

async function save(app: ConversationParts, call: AccountCall) {
  const name = nameOf(call);
  checkOffered(app, call);
  const { version, files } = call.body ?? {};
  if (typeof version !== 'number' || !Number.isInteger(version) || version < 0 || version > 2 ** 31 - 1)
    throw invalidField('version', 'version must be the number of the version that this one follows, or 0.');
  if (!Array.isArray(files) || files.length > files_max || !files.every(isFileId))
    throw invalidField('files', `files must be a list of at most ${files_max} ids of 24 hexadecimal digits.`);
  const line = objectIn(call, 'line', line_bytes_max);
  const turns = objectIn(call, 'turns', turns_bytes_max);
  const times = { now: new Date(app.clock.now()), keep_ms: app.catalog.current.settings.content.keep_ms };
  const saved = await savePlayground(app, name, { version, line, turns, file_ids: [...new Set(files)] }, times);
  if (typeof saved === 'string') throw notStoredError(saved);
  if ('missing' in saved) {
    const message = `${counted(saved.missing.length, 'file')} of it ${saved.missing.length === 1 ? 'is' : 'are'} not here. Send them first.`;
    throw new ApiError('conflict', message, { code: 'files_missing', param: 'files' });
  }
  if ('newest' in saved) {
    const message = `The conversation was changed elsewhere: its version is ${saved.newest}. Read it, and save both.`;
    throw new ApiError('conflict', message, { code: 'changed_elsewhere', param: 'version' });
  }
  return { status: 200, body: saved };
}

/** Leaves a tombstone, so that copies in other browsers go. One that is not there is no failure. */
const delete_conversation = account_endpoint('DELETE', '/conversations/{id}', 'run', removeOne, own);

async function removeOne(app: ConversationParts, call: AccountCall) {
  const outcome = await deletePlayground(app.db, nameOf(call), new Date(app.clock.now()));
  if (outcome === 'busy') throw notStoredError(outcome);
  return { status: 200, body: { ok: true } };
}

const get_file = account_endpoint('GET', '/conversations/{id}/files/{file}', 'run', readFile, own);

async function readFile(app: ConversationParts, call: AccountCall) {
  const data = await readPlaygroundFile(app, fileNameOf(call), new Date(app.clock.now()));
  if (data === undefined) throw new ApiError('not_found', 'There is no such file in this conversation.');
  const body: ConversationFile = { data };
  return { status: 200, body };
}

const put_file = account_endpoint('PUT', '/conversations/{id}/files/{file}', 'run', saveFile, {
  ...own,
  body_limit_bytes: file_body_max,
});

async function saveFile(app: ConversationParts, call: AccountCall) {
  const name = fileNameOf(call);
  checkOffered(app, call);
  const data = call.body?.['data'];
  if (typeof data !== 'string' || !data.isWellFormed()) throw invalidField('data', 'data must be the file in base64.');
  const outcome = await savePlaygroundFile(app, name, data, new Date(app.clock.now()));
  if (outcome === 'conversation full')
    throw tooLarge(`The files of a conversation have at most ${megabytes(files_bytes_max)} together.`, 'data');
  if (outcome !== 'stored') throw notStoredError(outcome);
  return { status: 200, body: { ok: true } };
}

export const conversation_endpoints = [
  list_conversations,
  switch_conversations,
  get_conversation,
  put_conversation,
  delete_conversation,
  get_file,
  put_file,
];

type ConversationParts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly catalog: CatalogHolder;
  readonly content_keys: ContentKeys;
};

/** Returns the most days that a conversation may stay; 0: none may be stored. */
function daysOf({ catalog }: Pick<ConversationParts, 'catalog'>, { account }: AccountCall): number {
  return account.keeps_responses ? keepDaysMax(catalog.current.settings) : 0;
}

function checkOffered(app: Pick<ConversationParts, 'catalog'>, call: AccountCall): void {
  if (daysOf(app, call) > 0) return;
  throw new ApiError('forbidden', 'Contents are not stored here: the operator does not allow it.', {
    code: 'conversations_not_offered',
  });
}

/** Throws ApiError 409 where a page of somebody else sends them, who signed in here before. */
function ownerOf(call: AccountCall) {
  const owner = ownerIn(call, 'keep conversations');
  if ((call.query.get('person') ?? owner.user_id) === owner.user_id) return owner;
  throw new ApiError('conflict', 'Somebody else has signed in by now. Load the page again.', {
    code: 'another_person',
    param: 'person',
  });
}

function nameOf(call: AccountCall) {
  const owner = ownerOf(call);
  const { id = '' } = call.params;
  if (!isPlaygroundId(id)) throw notFound();
  return { ...owner, id };
}

function fileNameOf(call: AccountCall) {
  const name = nameOf(call);
  const { file = '' } = call.params;
  if (!isPlaygroundId(file)) throw new ApiError('not_found', 'There is no such file in this conversation.');
  return { ...name, file_id: file };
}

function isFileId(value: unknown): value is string {
  return typeof value === 'string' && isPlaygroundId(value);
}

function sinceIn({ query }: AccountCall): number {
  const text = query.get('since') ?? '0';
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw invalidField('since', 'since must be the number of a version.');
}

/** The text of a member that is a JSON object in a string. */
function objectIn({ body }: AccountCall, name: 'line' | 'turns', bytes_max: number): string {
  const text = body?.[name];
  if (typeof text !== 'string' || !text.isWellFormed() || !isObjectText(text))
    throw invalidField(name, `${name} must be a string with a JSON object.`);
  if (Buffer.byteLength(text) <= bytes_max) return text;
  if (name === 'line') throw tooLarge(`The line of the list has at most ${bytes_max / 1_000} kB.`, name);
  throw tooLarge(`A conversation has at most ${megabytes(bytes_max)} without its files.`, name);
}

function isObjectText(text: string): boolean {
  try {
    return isRecord(JSON.parse(text));
  } catch {
    return false;
  }
}

function megabytes(bytes: number): string {
  return `${bytes / 1_000_000} MB`;
}

function tooLarge(message: string, param: string): ApiError {
  return new ApiError('too_large', message, { param });
}

function notStoredError(reason: NotStored): ApiError {
  switch (reason) {
    case 'off':
      return new ApiError('forbidden', 'You do not keep conversations on the server. Switch that on first.', {
        code: 'conversations_off',
      });
    case 'deleted':
      return deleted();
    case 'too many':
      return new ApiError(
        'conflict',
        `At most ${counted(conversations_max, 'conversation')} are kept. Delete some first.`,
        {
          code: 'too_many_conversations',
        },
      );
    case 'busy':
      return new ApiError('rate_limit', 'Too many conversations are being saved at the moment. Try again shortly.', {
        headers: { 'retry-after': '2' },
      });
    case 'no room':
      return new ApiError(
        'too_large',
        `All your conversations have at most ${megabytes(total_bytes_max)} together. Delete some first.`,
      );
  }
}

function deleted(): ApiError {
  return new ApiError('conflict', 'This conversation was deleted in another browser.', { code: 'deleted_elsewhere' });
}

function notFound(): ApiError {
  return new ApiError('not_found', 'You have no such conversation in this account.');
}
