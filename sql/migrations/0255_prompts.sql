-- Prompts that an account saved, with places for variables. The id is that of links within the account.
-- room: accounts
create table prompts (
  id text primary key,
  account_id text not null references accounts (id) on delete cascade,
  name text not null check (length(name) between 1 and 80),
  version integer not null check (version >= 1), -- the latest one
  created_at timestamptz not null,
  updated_at timestamptz not null,
  unique (account_id, name)
);

-- What a prompt said at a time. The last 100 stay.
-- room: accounts
create table prompt_versions (
  prompt_id text not null references prompts (id) on delete cascade,
  version integer not null check (version >= 1),
  body text not null check (length(body) <= 200000), -- JSON: model, system, text, fields
  user_id text, -- who wrote it
  created_at timestamptz not null,
  primary key (prompt_id, version)
);
