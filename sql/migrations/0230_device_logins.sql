-- Programs that wait until a person gives them a key (RFC 8628). A row is gone when the program has its key or its
-- refusal, or a while after it has expired.
-- room: accounts
create table device_logins (
  device_hash bytea primary key check (length(device_hash) = 32), -- SHA-256 of the code that the program has
  user_hash bytea not null unique check (length(user_hash) = 32), -- HMAC of the code that the person types: it is too short for a hash without a secret
  client text not null, -- what the program calls itself
  device text not null, -- what it calls its machine
  scopes text[], -- null: all
  address text not null, -- where the program is
  network text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  interval_s integer not null check (interval_s > 0), -- grows when the program asks too often
  polled_at timestamptz,
  decision text check (decision in ('approved', 'denied')),
  user_id text references auth."user" on delete cascade, -- who decided
  account_id text references accounts on delete cascade,
  key_name text,
  limit_month bigint check (limit_month >= 0),
  key_expires_at timestamptz,
  check (decision is distinct from 'approved' or (user_id is not null and account_id is not null and key_name is not null))
);
create index device_logins_by_network on device_logins (network);
create index device_logins_by_expiry on device_logins (expires_at);
