/** A placeholder until a person has given their own address; no such domain can exist (RFC 2606). */
export const no_mail_domain = 'medley.invalid';

/** In characters. */
export const password_length = { min: 10, max: 200 };

/**
 * Header in which the pipeline passes the client's address, behind trusted proxies too. A value from outside
 * is ignored.
 */
export const client_address_header = 'x-medley-client-address';
