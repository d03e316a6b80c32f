/** Rights of a person in an account. `content`: to read what was said in chats whose key stores that. */
export type Right = 'read' | 'run' | 'keys' | 'webhooks' | 'billing' | 'members' | 'content';

export const role_names = ['owner', 'developer', 'billing', 'viewer'] as const;

export type Role = (typeof role_names)[number];

/** Rights of each role. A viewer sees everything but secrets and contents, and changes nothing. */
export const rights_of: { readonly [role in Role]: readonly Right[] } = {
  owner: ['read', 'run', 'keys', 'webhooks', 'billing', 'members', 'content'],
  developer: ['read', 'run', 'keys', 'webhooks', 'content'],
  billing: ['read', 'billing'],
  viewer: ['read'],
};

/** Roles of members who may be limited to projects. The others are about the account as a whole. */
export const limitable_roles: readonly Role[] = ['developer', 'viewer'];

/** Rights about the account as a whole, which nobody has who is limited to projects. */
const rights_of_whole: readonly Right[] = ['webhooks', 'billing', 'members'];

/** Returns the rights of a member; `projects`: those that they are limited to, null for none. */
export function rightsOf({ role, projects }: Membership): readonly Right[] {
  const rights = rights_of[role];
  return projects === null ? rights : rights.filter((right) => !rights_of_whole.includes(right));
}

/** The standing of a member in an account. `projects`: ids of those that they are limited to, perhaps none; null: not limited. */
export type Membership = { role: Role; projects: readonly string[] | null };
