import type { Role } from '../../accounts/roles.ts';

export type SessionView = {
  id: string;
  created_at: string;
  used_at: string;
  address: string | null;
  /** As the browser calls itself. */
  user_agent: string | null;
  /** The one that asks. */
  is_this: boolean;
};

/** The projects that somebody is limited to; null: they see all of the account. */
export type LimitView = { id: string; name: string }[] | null;

export type MemberView = {
  user_id: string;
  name: string;
  email: string | null;
  role: Role;
  projects: LimitView;
  two_factor: boolean;
  created_at: string;
};

export type PendingInvitationView = {
  /** By which it is withdrawn; its link has another one. */
  id: string;
  email: string;
  role: Role;
  projects: LimitView;
  inviter: string;
  created_at: string;
  expires_at: string;
  /** To hand over: whoever has it can join. Null for what another owner has sent. */
  link: string | null;
};

/** A key that somebody has made, and that opens more than they see from now on. */
export type KeyOutsideView = { id: string; name: string; project: { id: string; name: string }; is_limited: boolean };

/** A member who was changed or removed. */
export type MemberChangedView = { keys_outside: KeyOutsideView[] };

/** `invitations` only for who may let people in. */
export type TeamView = {
  members: MemberView[];
  invitations: PendingInvitationView[] | null;
  second_factor_required: boolean;
};

export type InvitedView = { link: string; expires_at: string; mailed: boolean };

/** A connection of this person with an issuer. `issuer_id`: null where it signs nobody in any more. */
export type LinkedSignInView = {
  id: string;
  name: string;
  email: string | null;
  created_at: string;
  used_at: string | null;
  issuer_id: string | null;
};

/** A passkey. `other_host`: it was made at another address of the service, and does nothing here. */
export type PasskeyView = {
  id: string;
  name: string;
  created_at: string;
  used_at: string | null;
  is_synced: boolean;
  other_host: string | null;
};

/** The passkeys of this person. `obstacle`: the reason why browsers offer none at this address. */
export type PasskeysView = { data: PasskeyView[]; is_on: boolean; obstacle: string | null };

/** An entry of the audit log. */
/** An entry in a list; the name is null for an account that is deleted, too. */
export type AuditLineView = AuditView & {
  account_name: string | null;
  /** Present names of its subject and of ids in its details. */
  names: Record<string, string>;
};

export type AuditView = {
  id: string;
  at: string;
  account_id: string | null;
  actor: string;
  action: string;
  subject: string | null;
  details: Record<string, unknown> | null;
  address: string | null;
};
