/** Reasons why somebody did not get in by an issuer, as the page knows them. */
export const sign_in_problems = [
  'answer',
  'clock',
  'denied',
  'email_domain',
  'email_known',
  'email_missing',
  'email_unproved',
  'expired',
  'linked_elsewhere',
  'not_fresh',
  'too_many',
  'unknown_person',
  'unreachable',
] as const;

export type SignInProblemCode = (typeof sign_in_problems)[number];

/**
 * Somebody does not get in by an issuer. The message is for the operator's log; people read the page's words for the
 * code. `unknown_key` never leaves the client of issuers.
 */
export class SignInProblem extends Error {
  override name = 'SignInProblem';
  readonly code: SignInProblemCode | 'unknown_key';

  constructor(code: SignInProblem['code'], message: string) {
    super(message);
    this.code = code;
  }
}
