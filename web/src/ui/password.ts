/** What a password must be, as all forms say it. */
export const password_rule = 'At least 10 characters, and none that many people use.';
