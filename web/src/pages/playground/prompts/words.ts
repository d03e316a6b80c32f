/** Says why somebody who is limited to projects has no saved prompts, and opens no link to one. */
export const only_for_all = 'Saved prompts belong to the whole account: members of some projects do not see them.';
