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
