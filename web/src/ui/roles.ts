/** Roles within a sentence. */
const role_words: Readonly<Record<string, string>> = {
  owner: 'owner',
  developer: 'developer',
  billing: 'billing',
  viewer: 'viewer',
  operator: 'operator',
};

/** Names a role within a sentence: `Your role here (viewer)`. */
export function roleName(role: string): string {
  return role_words[role] ?? role;
}
