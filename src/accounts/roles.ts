/** Rights of a person in an account. */
export type Right = 'read' | 'run' | 'keys' | 'webhooks' | 'billing' | 'members';

export const role_names = ['owner', 'developer', 'billing', 'viewer'] as const;

export type Role = (typeof role_names)[number];

/** Rights of each role. A viewer sees everything but secrets, and changes nothing. */
export const rights_of: { readonly [role in Role]: readonly Right[] } = {
  owner: ['read', 'run', 'keys', 'webhooks', 'billing', 'members'],
  developer: ['read', 'run', 'keys', 'webhooks'],
  billing: ['read', 'billing'],
  viewer: ['read'],
};
