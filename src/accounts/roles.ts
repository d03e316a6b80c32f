/** What a person may do with an account. */
export type Right = 'read' | 'run' | 'keys' | 'webhooks' | 'billing' | 'members';

export const role_names = ['owner', 'developer', 'billing', 'viewer'] as const;

export type Role = (typeof role_names)[number];

/** Who may what. A viewer sees everything but secrets, and changes nothing. */
export const rights_of: { readonly [role in Role]: readonly Right[] } = {
  owner: ['read', 'run', 'keys', 'webhooks', 'billing', 'members'],
  developer: ['read', 'run', 'keys', 'webhooks'],
  billing: ['read', 'billing'],
  viewer: ['read'],
};
