import type { MemberView } from '../../../../src/dashboard/views/settings.ts';

/** Names and rights of the roles. */
export const role_words: { readonly [role in MemberView['role']]: { name: string; may: string } } = {
  owner: { name: 'Owner', may: 'Everything, including people and money.' },
  developer: { name: 'Developer', may: 'Runs models, creates keys, sets up webhooks.' },
  billing: { name: 'Billing', may: 'Sees everything, pays, gets invoices.' },
  viewer: { name: 'Viewer', may: 'Sees everything but secrets, changes nothing.' },
};

export const role_choices = (['owner', 'developer', 'billing', 'viewer'] as const).map((role) => {
  return { value: role, label: role_words[role].name };
});
