-- An e-mail address counts once somebody has followed the link that was mailed to it. Until then it is a claim: whose
-- row here waits for that link, or, where the service sends no mail, an address of auth."user" without "emailVerified".
-- Whoever proves the mailbox gets the address; an unproved holder loses it.
-- room: accounts
create table email_claims (
  user_id text primary key references auth."user" on delete cascade, -- a new claim replaces the one before
  hash bytea not null unique check (length(hash) = 32), -- SHA-256 of the token; the token itself is nowhere
  email text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
