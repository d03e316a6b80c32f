-- Who signs in to the dashboard. The tables in the schema auth are the login library's (better-auth 1.6), with
-- its names; only src/accounts/login.ts opens them by way of it, and src/accounts/members.ts reads them.
-- An organisation is an account, under the same id.
create schema auth;

-- room: accounts
create table auth."user" (
  id text primary key,
  name text not null,
  email text not null unique,
  "emailVerified" boolean not null,
  image text,
  "createdAt" timestamptz not null default current_timestamp,
  "updatedAt" timestamptz not null default current_timestamp,
  "twoFactorEnabled" boolean,
  "isOperator" boolean not null default false
);

-- room: accounts
create table auth.session (
  id text primary key,
  "expiresAt" timestamptz not null,
  token text not null unique,
  "createdAt" timestamptz not null default current_timestamp,
  "updatedAt" timestamptz not null,
  "ipAddress" text,
  "userAgent" text,
  "userId" text not null references auth."user" on delete cascade,
  "activeOrganizationId" text
);
create index session_of_user on auth.session ("userId");

-- room: accounts
create table auth.account (
  id text primary key,
  "accountId" text not null,
  "providerId" text not null,
  "userId" text not null references auth."user" on delete cascade,
  "accessToken" text,
  "refreshToken" text,
  "idToken" text,
  "accessTokenExpiresAt" timestamptz,
  "refreshTokenExpiresAt" timestamptz,
  scope text,
  password text, -- scrypt
  "createdAt" timestamptz not null default current_timestamp,
  "updatedAt" timestamptz not null
);
create index account_of_user on auth.account ("userId");

-- room: accounts
create table auth.verification (
  id text primary key,
  identifier text not null,
  value text not null,
  "expiresAt" timestamptz not null,
  "createdAt" timestamptz not null default current_timestamp,
  "updatedAt" timestamptz not null default current_timestamp
);
create index verification_by_identifier on auth.verification (identifier);

-- room: accounts
create table auth.organization (
  id text primary key references public.accounts,
  name text not null,
  slug text not null unique,
  logo text,
  "createdAt" timestamptz not null,
  metadata text
);

-- room: accounts
create table auth.member (
  id text primary key,
  "organizationId" text not null references auth.organization on delete cascade,
  "userId" text not null references auth."user" on delete cascade,
  role text not null check (role in ('owner', 'developer', 'billing', 'viewer')),
  "createdAt" timestamptz not null,
  unique ("userId", "organizationId")
);
create index member_of_organization on auth.member ("organizationId");

-- room: accounts
create table auth.invitation (
  id text primary key,
  "organizationId" text not null references auth.organization on delete cascade,
  email text not null,
  role text check (role in ('owner', 'developer', 'billing', 'viewer')),
  status text not null,
  "expiresAt" timestamptz not null,
  "createdAt" timestamptz not null default current_timestamp,
  "inviterId" text not null references auth."user" on delete cascade
);
create index invitation_of_organization on auth.invitation ("organizationId");
create index invitation_by_email on auth.invitation (email);

-- room: accounts
create table auth."twoFactor" (
  id text primary key,
  secret text not null,        -- encrypted with the service's secret
  "backupCodes" text not null, -- encrypted with the service's secret
  "userId" text not null references auth."user" on delete cascade,
  verified boolean,
  "failedVerificationCount" integer,
  "lockedUntil" timestamptz
);
create index two_factor_of_user on auth."twoFactor" ("userId");

-- Accounts that were made before there was a dashboard; later ones get theirs from createAccount.
insert into auth.organization (id, name, slug, "createdAt") select id, name, id, created_at from accounts;

-- A link that signs one person in, once: shown on the terminal, or handed over by the operator.
-- room: accounts
create table login_links (
  hash bytea primary key check (length(hash) = 32), -- SHA-256 of the token; the token itself is nowhere
  user_id text not null references auth."user" on delete cascade,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz
);

-- Who did what in the dashboard, and what operators did to accounts of others. Never changed.
-- room: accounts
create table audit_entries (
  id text primary key,
  account_id text references accounts, -- null: it concerns the whole service
  user_id text,                        -- null: the command line
  actor text not null,                 -- as it was called then: e-mail address, or "command line"
  action text not null,                -- "key.create", "account.credit"
  subject text,                        -- id of what it was done to
  details jsonb,                       -- never a secret
  address text,                        -- where from
  created_at timestamptz not null
);
create index audit_entries_of_account on audit_entries (account_id, id);

-- room: accounts
create function refuse_audit_change() returns trigger language plpgsql as $$
begin
  raise exception 'audit entries are never changed or deleted' using errcode = 'restrict_violation';
end $$;
create trigger audit_entries_immutable before update or delete on audit_entries
  for each row execute function refuse_audit_change();
create trigger audit_entries_not_truncated before truncate on audit_entries
  for each statement execute function refuse_audit_change();
