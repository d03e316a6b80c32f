import type { Queryable } from '../db/database.ts';
import type { AuditEntry } from './audit.ts';
import { default_project } from './projects.ts';

type Named = Pick<AuditEntry, 'account_id' | 'subject' | 'details'>;

/** Returns, by id, the names that projects, keys and people have now to which these entries refer. */
export async function namesInAudit(db: Queryable, entries: readonly Named[]): Promise<Map<string, string>> {
  const ids = [...new Set(entries.flatMap(idsIn))];
  if (ids.length === 0) return new Map();
  const accounts = entries.flatMap(({ account_id }) => account_id ?? []);
  const rows = await db.query<{ id: string; name: string }>(
    `select id, name from api_keys where id = any($1) and account_id = any($2)
     union all select id, name from projects where id = any($1) and account_id = any($2)
     union all select u.id, u.name from auth."user" u where u.id = any($1)
       and exists (select 1 from auth.member m where m."userId" = u.id and m."organizationId" = any($2))`,
    [ids, accounts],
  );
  return new Map([...rows.map(({ id, name }) => [id, name] as const), [default_project.id, default_project.name]]);
}

/** Returns the subject of an entry and the ids in its details. */
export function idsIn({ subject, details }: Named): string[] {
  const values = Object.entries(details ?? {}).filter(([field]) => field !== 'name' && field !== 'reason');
  const texts = values.flatMap(([, value]) => (typeof value === 'string' ? value.split(', ') : []));
  return subject === null ? texts : [subject, ...texts];
}
