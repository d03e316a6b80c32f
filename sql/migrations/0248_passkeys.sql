-- Passkeys (WebAuthn) by which people sign in, and the challenges that one of them has answered: each counts once, on all
-- nodes together (decision 126).
-- module: accounts
create table passkeys (
  id text primary key,
  user_id text not null references auth."user" (id) on delete cascade,
  credential_id bytea not null unique check (length(credential_id) between 1 and 1023), -- as the authenticator calls it
  public_key bytea not null check (length(public_key) between 1 and 2000), -- as COSE
  counter bigint not null check (counter >= 0), -- of signatures; synchronised passkeys stay at 0
  host text not null check (length(host) between 1 and 253), -- to which browsers bind it
  transports text[] not null check (cardinality(transports) <= 10),
  is_synced boolean not null, -- more than one device may have it
  name text not null check (length(name) between 1 and 60),
  created_at timestamptz not null,
  used_at timestamptz
);
create index passkeys_of_user on passkeys (user_id);

-- module: accounts
create table used_challenges (
  hash bytea primary key check (length(hash) = 32),
  expires_at timestamptz not null -- afterwards its time alone refuses it
);
create index used_challenges_by_end on used_challenges (expires_at);
