import { contentsFile, exportDetails, exportedProjects } from '../api/chat-content.ts';
import { contentView } from '../chat/content-export.ts';
import { deleteContent, findContent } from '../contents/stored.ts';
import { audit, contentAccesses } from '../accounts/audit.ts';
import { findAccount } from '../accounts/accounts.ts';
import { keysInSight } from '../accounts/project-scope.ts';
import { projectNames } from '../accounts/projects.ts';
import { undecryptable, type ContentKeys } from '../db/content.ts';
import type { Db } from '../db/database.ts';
import { ApiError } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import { isId } from '../lib/ids.ts';
import { readBodyFields } from './body-fields.ts';
import { auditAction } from './audit-action.ts';
import { findChat } from './chats.ts';
import { account_endpoint, session_endpoint, type AccountCall } from './page.ts';
import type { ChatContentView, ContentAccesses } from './views/activity.ts';

const text = { type: 'string' };
const filters = {
  form: { description: 'full or messages.', schema: text },
  outcome: { description: 'ok or failed.', schema: text },
  model: { description: 'Only this model.', schema: text },
  key: { description: 'Only of this key.', schema: text },
  project: { description: 'Only of keys that are in this project now.', schema: text },
  from: { description: 'Made at this time or later.', schema: text },
  to: { description: 'Made before this time.', schema: text },
};

/** The content of a call. Each read is noted, so this is no GET, which browsers may send by themselves. */
export const open_content = account_endpoint(
  'POST',
  '/chats/{id}/content',
  'content',
  async (app, call) => {
    await checkSight(app.db, call);
    const view = await readView(app, { account_id: call.account.id, id: call.params['id'] ?? '' });
    await auditAction(app, call, 'content.read', call.params['id']);
    return { status: 200, body: view };
  },
  { limited: 'own' },
);

/** Deletes the content of a call; its record stays. */
export const delete_content = account_endpoint(
  'DELETE',
  '/chats/{id}/content',
  'content',
  async (app, call) => {
    const { id = '' } = call.params;
    await checkSight(app.db, call);
    if (!(await deleteContent(app.db, call.account.id, id))) throw missing();
    await auditAction(app, call, 'content.delete', id);
    return { status: 200, body: { ok: true } };
  },
  { limited: 'own' },
);

/** Throws ApiError 404 for a call that is out of sight. */
async function checkSight(db: Db, call: AccountCall): Promise<void> {
  if (call.scope && !(await findChat(db, call))) throw missing();
}

/** The contents of the calls of a list, as lines of JSON. */
export const get_contents_jsonl = account_endpoint(
  'GET',
  '/contents.jsonl',
  'content',
  async (app, call) => {
    const { query, account, scope } = call;
    const keys = await keysInSight(app.db, account.id, scope, query.get('project'));
    const whose = { account_id: account.id, key_id: query.get('key'), keys };
    const { headers, ...file } = contentsFile(app, query, { ...whose, from: 'from', to: 'to' });
    await auditAction(app, call, 'content.export', undefined, exportDetails(query, scope));
    return { ...file, headers: { ...headers, 'content-disposition': 'attachment; filename="contents.jsonl"' } };
  },
  { query: filters, limited: 'own' },
);

const accesses_max = 20;

/** Those who read the content of a call, or took contents along, since the call was made. */
export const content_accesses = account_endpoint('GET', '/chats/{id}/content/accesses', 'read', async (app, call) => {
  const { id = '' } = call.params;
  const account_id = call.account.id;
  const entries = await contentAccesses(app.db, { account_id, id, limit: accesses_max });
  const names = await projectNames(app.db, account_id);
  const view: ContentAccesses = {
    data: entries.map(({ actor, action, details, address, created_at }) => ({
      actor,
      action,
      projects: exportedProjects(details)?.map((project) => names.get(project) ?? project) ?? null,
      reason: typeof details?.['reason'] === 'string' ? details['reason'] : null,
      address,
      at: created_at.toISOString(),
    })),
  };
  return { status: 200, body: view };
});

const reason_length = { min: 10, max: 300 };

/** The content of a call of an account for an operator, who says why: the account reads that in its audit log. */
export const admin_open_content = session_endpoint(
  'POST',
  '/dash/admin/accounts/{id}/chats/{chat}/content',
  'operator',
  async (app, { params, person, address, body }) => {
    const { id: account_id = '', chat: id = '' } = params;
    const reason = readBodyFields(body).text('reason', reason_length.max);
    if (reason.length < reason_length.min) {
      const message = `reason must have at least ${reason_length.min} characters: the account reads it.`;
      throw new ApiError('invalid_request', message, { param: 'reason' });
    }
    const account = await findAccount(app.db, account_id);
    if (!account) throw new ApiError('not_found', 'There is no such account.');
    const view = await readView(app, { account_id, id });
    const audit_entry = { account_id, user: person.user, action: 'content.read', subject: id, address };
    await audit(app.db, { ...audit_entry, details: { reason, operator: true }, now: new Date(app.clock.now()) });
    return { status: 200, body: view };
  },
  { needs_proof: true },
);

async function readView(
  app: { db: Db; clock: Clock; content_keys: ContentKeys },
  name: { account_id: string; id: string },
): Promise<ChatContentView> {
  const stored = isId('req', name.id) ? await findContent(app, name, new Date(app.clock.now())) : undefined;
  if (!stored) throw missing();
  const { content, expires_at } = stored;
  if (!content) throw new ApiError('not_found', undecryptable);
  return { ...contentView(content), expires_at: expires_at.toISOString() };
}

function missing(): ApiError {
  return new ApiError('not_found', 'There is no content of this call: its key stores none, or its time is over.');
}
