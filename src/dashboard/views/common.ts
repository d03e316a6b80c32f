/**
 * Response types of the dashboard's endpoints, for both sides: the web app imports these types and nothing
 * else of the server. Only types, and only imports of files that import nothing.
 */
import type { Right, Role } from '../../accounts/roles.ts';

/** `amount` with two digits, `exact` with six. */
export type Cost = { amount: string; currency: string; exact: string };

export type Person = {
  id: string;
  name: string;
  email: string;
  /** Followed a link that was mailed to it. */
  email_proved: boolean;
  /** Another address, whose proof is waited for. */
  email_claim: string | null;
  /** Runs this service. */
  is_operator: boolean;
  two_factor: boolean;
  /** Came by a link and has no way to sign in yet. */
  is_new: boolean;
  has_password: boolean;
  /** Has passkeys that sign in at this address. */
  has_passkeys: boolean;
  /** The language of the dashboard; null follows the browser. */
  language: string | null;
};

/** An account as whoever looks at it may use it. */
export type MyAccount = {
  id: string;
  name: string;
  currency: string;
  status: 'active' | 'blocked';
  role: Role | 'operator';
  rights: readonly Right[];
  /** Nothing of it is shown before this person has turned on a second factor. */
  needs_second_factor: boolean;
  /** This person is limited to some of its projects, perhaps to none. */
  is_limited: boolean;
  has_no_project: boolean;
};

/** `mails`: this service sends mail, so addresses can be asked for. */
export type Me = {
  user: Person;
  accounts: MyAccount[];
  base_url: string;
  mails: boolean;
  /** The same for the pages of operators. */
  operator_needs_second_factor: boolean;
};

export type BalanceView = { balance: Cost; held: Cost; available: Cost };

/** `projects`: names of those that the person will be limited to; null: not limited. */
export type InvitationView = { account_name: string; email: string; role: Role; projects: string[] | null };

/** The ways in that this service has. `mails`: links can be mailed. */
export type SignInView = {
  password: boolean;
  passkeys: boolean;
  mails: boolean;
  issuers: { id: string; name: string }[];
};
