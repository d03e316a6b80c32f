import type { Role } from '../roles.ts';

/** Ways to sign in, as the operator has configured them. */
export type SignInSettings = {
  /** People may have passwords. */
  readonly password: boolean;
  /** People may have passkeys. */
  readonly passkeys: boolean;
  /** Operators see the pages of operators after a second factor only. */
  readonly operators_need_second_factor: boolean;
  readonly issuers: readonly SignInIssuer[];
};

/** Somebody else's service that says who a person is. */
export type SignInIssuer = {
  /** Part of the address to which it sends people back. */
  readonly id: string;
  /** GitHub speaks OAuth 2.0 without ID tokens. */
  readonly protocol: 'oidc' | 'github';
  /** Its address, without a slash at the end. People are known by it and the issuer's own id of them. */
  readonly issuer: string;
  readonly name: string;
  readonly client_id: string;
  /** env:NAME or file:/path. */
  readonly client_secret: string;
  /** In lower case. Empty: all. */
  readonly email_domains: readonly string[];
  /** Every address of this issuer counts as proved, also where it does not say so. */
  readonly verified_emails: boolean;
  /** Signing in there is as good as with a second factor here. */
  readonly trusts_second_factor: boolean;
  readonly newcomers: Newcomers;
};

/** People whom nobody knows here: refused, owners of an account of their own, or members of this one. */
export type Newcomers = 'refused' | 'own_account' | { readonly account_id: string; readonly role: Role };
