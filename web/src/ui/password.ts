/** The password rule, as all forms word it. */
export const password_rule = 'At least 10 characters, and not a common password.';
