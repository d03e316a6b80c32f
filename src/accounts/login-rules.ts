/** A placeholder until a person has given their own address; no such domain can exist (RFC 2606). */
export const no_mail_domain = 'medley.invalid';

/** In characters. */
export const password_length = { min: 10, max: 200 };
