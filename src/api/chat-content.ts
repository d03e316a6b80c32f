import { Readable } from 'node:stream';
import { audit } from '../accounts/audit.ts';
import type { Caller } from '../accounts/authenticate.ts';
import { reaches, scopeOfKey } from '../accounts/limited-keys.ts';
import { keysInSight, type ProjectScope } from '../accounts/project-scope.ts';
import { contentLines, contentView, export_forms } from '../chat/content-export.ts';
import { undecryptable, type ContentKeys } from '../db/content.ts';
import { reading, type ReadParts } from '../db/reads.ts';
import type { Db } from '../db/database.ts';
import { deleteContent, findContent, type FoundContent } from '../contents/stored.ts';
import { ApiError } from '../errors.ts';
import type { Call, Endpoint, Query } from '../http/endpoint.ts';
import { moment, oneOf } from '../http/query.ts';
import type { Clock } from '../lib/clock.ts';
import { isId } from '../lib/ids.ts';
import type { KeysOfProjects } from '../money/key-budgets.ts';

/** The parts of the app that reading contents takes. */
type Parts = { readonly db: Db; readonly clock: Clock; readonly content_keys: ContentKeys };

/** Those that a file of many takes. */
type FileParts = Parts & ReadParts;

const text = { type: 'string' };
const params = { request_id: { description: 'The `x-request-id` of the call.', schema: text } };
const whose =
  'A key reads the calls that it made. One whose scopes are `read` alone reads those of all keys of its account; limited to a project, those of its project.';

/** The content of a call, its removal, and a file of many. */
export const chat_contents: readonly Endpoint<FileParts>[] = [
  {
    method: 'GET',
    path: '/v1/chat/{request_id}/content',
    docs: {
      tag: 'Chat',
      summary: 'Get the content of a chat call',
      description: `Stored where the key of the call has \`log_content\`, and redacted before that. ${whose} Each read is in the audit log of the account.`,
      params,
      responses: {
        200: {
          description: 'Messages and answers in the form of chat completions, whatever the style of the call was.',
        },
      },
      errors: [404],
    },
    handle: async (app, call) => {
      const stored = await findOwn(app, call);
      const { content, created_at, expires_at, id, api_key_id } = stored;
      if (!content) throw new ApiError('not_found', undecryptable);
      await note(app, call, 'content.read', id);
      const body = {
        object: 'chat.content',
        request_id: id,
        key: api_key_id,
        ...contentView(content),
        created_at: created_at.toISOString(),
        expires_at: expires_at.toISOString(),
      };
      return { status: 200, body };
    },
  },
  {
    method: 'DELETE',
    path: '/v1/chat/{request_id}/content',
    docs: {
      tag: 'Chat',
      summary: 'Delete the content of a chat call',
      description: 'The record of the call stays. A key deletes what it may read.',
      params,
      responses: { 200: { description: 'Deleted.' } },
      errors: [404],
    },
    handle: async (app, call) => {
      const { id } = await findOwn(app, call);
      await deleteContent(app.db, call.caller.account.id, id);
      await note(app, call, 'content.delete', id);
      return { status: 200, body: { object: 'chat.content', request_id: id, deleted: true } };
    },
  },
  {
    method: 'GET',
    path: '/v1/chat/contents',
    docs: {
      tag: 'Chat',
      summary: 'Export contents of chat calls',
      description: `A JSON object for each call that has content, oldest first, up to 10,000. ${whose}`,
      query: {
        form: { description: '`full` (default), or `messages` for training.', schema: { enum: [...export_forms] } },
        model: { description: 'Only calls of this model.', schema: text },
        key: { description: 'Only calls of this key, by its id.', schema: text },
        outcome: { description: '`ok` or `failed`.', schema: { enum: ['ok', 'failed'] } },
        created_after: { description: 'Made at this time or later (ISO 8601).', schema: text },
        created_before: { description: 'Made before this time.', schema: text },
      },
      responses: { 200: { description: 'Lines of JSON.', content_type: 'application/jsonl' } },
    },
    handle: async (app, call) => {
      const { query, caller, gone } = call;
      const account_id = caller.account.id;
      const db = reading(app, { key: account_id, gone });
      const key_id = readsAll(caller) ? query.get('key') : caller.key.id;
      const scope = await scopeOfKey(db, caller);
      const owner = { account_id, key_id, keys: await keysInSight(db, account_id, scope) };
      const file = contentsFile({ ...app, db }, query, { ...owner, from: 'created_after', to: 'created_before' });
      await note(app, call, 'content.export', undefined, exportDetails(query, scope));
      return file;
    },
  },
];

/** Returns what the audit log says of a file of contents: what was asked for, and the only projects that it could be of. */
export function exportDetails(query: Query, scope: ProjectScope | undefined): Record<string, unknown> {
  return { ...Object.fromEntries(query), ...(scope && { projects: scope.project_ids }) };
}

/** Reads the projects of `exportDetails`; undefined: it was of the whole account. */
export function exportedProjects(details: Record<string, unknown> | null): string[] | undefined {
  const projects = details?.['projects'];
  return Array.isArray(projects) ? projects.map(String) : undefined;
}

/** Contents of whom, among the keys in sight, and the names of the parameters that say of which time. */
type Exported = { account_id: string; key_id: string | undefined; keys: KeysOfProjects; from: string; to: string };

/** Returns a file of contents, as a query asks for them. Throws ApiError 400 that names the parameter. */
export function contentsFile(
  app: Parts,
  query: Query,
  { account_id, key_id, keys, from, to }: Exported,
): {
  status: 200;
  body: Readable;
  headers: Record<string, string>;
} {
  const form = oneOf(query, 'form', export_forms) ?? 'full';
  const outcome = oneOf(query, 'outcome', ['ok', 'failed']);
  const model = query.get('model');
  const [created_after, created_before] = [moment(query, from), moment(query, to)];
  const filter = {
    account_id,
    ...keys,
    ...(model !== undefined && { model }),
    ...(key_id !== undefined && { key_id }),
    ...(outcome && { ok: outcome === 'ok' }),
    ...(created_after && { created_after }),
    ...(created_before && { created_before }),
  };
  const lines = contentLines(app, filter, form, new Date(app.clock.now()));
  return { status: 200, body: Readable.from(lines), headers: { 'content-type': 'application/jsonl; charset=utf-8' } };
}

/** True for keys that are made to read: those of programs that call models are in many places. */
function readsAll({ key: { rules } }: Caller): boolean {
  return rules?.scopes?.every((scope) => scope === 'read') === true;
}

async function isReadableBy(db: Db, caller: Caller, key_id: string): Promise<boolean> {
  return key_id === caller.key.id || (readsAll(caller) && (await reaches(db, caller, key_id)));
}

async function findOwn(app: Parts, { caller, params: { request_id: id = '' } }: Call): Promise<FoundContent> {
  const name = { account_id: caller.account.id, id };
  const stored = isId('req', id) ? await findContent(app, name, new Date(app.clock.now())) : undefined;
  if (stored && (await isReadableBy(app.db, caller, stored.api_key_id))) return stored;
  const message = `There is no content of a chat call ${JSON.stringify(id.slice(0, 64))} that this key may read.`;
  throw new ApiError('not_found', message);
}

/** Writes down who reads; before they do. */
async function note(
  { db, clock }: Parts,
  { caller, address }: Call,
  action: string,
  subject?: string,
  details?: Record<string, unknown>,
): Promise<void> {
  const by = `key ${caller.key.name} (${caller.key.id})`;
  const audit_entry = { account_id: caller.account.id, by, action, subject, details, address };
  await audit(db, { ...audit_entry, now: new Date(clock.now()) });
}
