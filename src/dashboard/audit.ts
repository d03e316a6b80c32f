import { invalidField } from '../errors.ts';
import { Readable } from 'node:stream';
import { accountNames } from '../accounts/accounts.ts';
import { idsIn, namesInAudit } from '../accounts/audit-names.ts';
import { exportAudit, listAudit, type AuditEntry, type AuditFilter } from '../accounts/audit.ts';
import type { Db } from '../db/database.ts';
import type { Answer, Query } from '../http/endpoint.ts';
import { moment } from '../http/query.ts';
import { isId } from '../lib/ids.ts';
import { csvAnswer, type Cell } from './csv.ts';
import { account_endpoint, session_endpoint } from './page.ts';
import type { Page } from './views/activity.ts';
import type { AuditLineView, AuditView } from './views/settings.ts';

/** The audit log: of one account for its owners, of all for operators; as pages, and as files of a span of time. */

const text = { type: 'string' };
const page_size = 50;

const query = {
  action: { description: 'Only this action.', schema: text },
  entry: { description: 'Only this entry.', schema: text },
  after: { description: 'Older than this one.', schema: text },
  from: { description: 'Since this time.', schema: text },
  to: { description: 'Before this time.', schema: text },
};

const operator_query = { ...query, account: { description: 'Only of this account.', schema: text } };

type Filter = Omit<AuditFilter, 'limit'>;

function readFilter(query_values: Query, account_id: string | undefined): Filter {
  const [action, after, id] = ['action', 'after', 'entry'].map((name) => query_values.get(name));
  const [from, to] = [moment(query_values, 'from'), moment(query_values, 'to')];
  if (after !== undefined && !isId('audit', after)) throw invalidField('after', 'after must be the id of an entry.');
  return {
    ...(account_id !== undefined && { account_id }),
    ...(action !== undefined && { action }),
    ...(id !== undefined && { id }),
    ...(after !== undefined && { after }),
    ...(from && { from }),
    ...(to && { to }),
  };
}

/** An entry as people and files have it. */
function renderEntry(entry: AuditEntry): AuditView {
  const { id, created_at, account_id, actor, action, subject, details, address } = entry;
  return { id, at: created_at.toISOString(), account_id, actor, action, subject, details, address };
}

async function pageOf(db: Db, filter: Filter): Promise<Answer> {
  const { entries, has_more } = await listAudit(db, { limit: page_size, ...filter });
  const account_ids = entries.flatMap(({ account_id }) => account_id ?? []);
  const [accounts, names] = await Promise.all([accountNames(db, account_ids), namesInAudit(db, entries)]);
  const named = (entry: AuditEntry): AuditLineView => {
    const own = idsIn(entry).flatMap((id) => {
      const name = names.get(id);
      return name === undefined ? [] : [[id, name]];
    });
    const account_name = accounts.get(entry.account_id ?? '') ?? null;
    return { ...renderEntry(entry), account_name, names: Object.fromEntries(own) };
  };
  const page: Page<AuditLineView> = { data: entries.map(named), has_more };
  return { status: 200, body: page };
}

function csvOf(db: Db, filter: Filter): Answer {
  return csvAnswer('audit', audit_columns, auditRows(exportAudit(db, filter)));
}

export const audit_columns = ['id', 'time', 'account', 'actor', 'action', 'subject', 'details', 'address'];

/** The cells of a file for spreadsheets. */
export async function* auditRows(entries: AsyncIterable<AuditEntry>): AsyncGenerator<Cell[]> {
  for await (const { id, created_at, account_id, actor, action, subject, details, address } of entries)
    yield [id, created_at, account_id, actor, action, subject, details && JSON.stringify(details), address];
}

function jsonlOf(db: Db, filter: Filter): Answer {
  return {
    status: 200,
    body: Readable.from(auditLines(exportAudit(db, filter))),
    headers: {
      'content-type': 'application/jsonl; charset=utf-8',
      'content-disposition': 'attachment; filename="audit.jsonl"',
    },
  };
}

/** Renders each entry as a line with one JSON object. */
export async function* auditLines(entries: AsyncIterable<AuditEntry>): AsyncGenerator<string> {
  for await (const entry of entries) yield `${JSON.stringify(renderEntry(entry))}\n`;
}

/** The log of one account, newest first, for its owners. */
export const get_audit = account_endpoint(
  'GET',
  '/audit',
  'members',
  (app, call) => pageOf(app.db, readFilter(call.query, call.account.id)),
  { query },
);

export const get_audit_csv = account_endpoint(
  'GET',
  '/audit.csv',
  'members',
  (app, call) => csvOf(app.db, readFilter(call.query, call.account.id)),
  { query },
);

export const get_audit_jsonl = account_endpoint(
  'GET',
  '/audit.jsonl',
  'members',
  (app, call) => jsonlOf(app.db, readFilter(call.query, call.account.id)),
  { query },
);

/** The log of all accounts, newest first. */
export const admin_audit = session_endpoint(
  'GET',
  '/dash/admin/audit',
  'operator',
  (app, call) => pageOf(app.db, readFilter(call.query, call.query.get('account'))),
  { query: operator_query },
);

export const admin_audit_csv = session_endpoint(
  'GET',
  '/dash/admin/audit.csv',
  'operator',
  (app, call) => csvOf(app.db, readFilter(call.query, call.query.get('account'))),
  { query: operator_query },
);

export const admin_audit_jsonl = session_endpoint(
  'GET',
  '/dash/admin/audit.jsonl',
  'operator',
  (app, call) => jsonlOf(app.db, readFilter(call.query, call.query.get('account'))),
  { query: operator_query },
);
