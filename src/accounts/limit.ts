import { limitable_roles } from './roles.ts';

const roles = limitable_roles.map((role) => `'${role}'`).join(', ');

/**
 * Returns the SQL of the projects that a row of members or invitations is limited to, null for none. Nodes of a version before
 * may have left some at a role that has none.
 */
export function limitOf(row: string): string {
  return `case when ${row}.role in (${roles}) then ${row}.projects end`;
}
