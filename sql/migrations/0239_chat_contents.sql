-- The content of a chat call whose key stores it: request and answer, redacted, as compressed JSON.
-- `key_id`: the key that encrypts it; null: none does. `api_key_id`: the key of the call.
-- room: contents
create table chat_contents (
  account_id text not null references accounts (id),
  id text not null,
  api_key_id text not null,
  key_id text,
  content bytea not null,
  size_bytes integer not null check (size_bytes >= 0),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (account_id, id)
);
create index chat_contents_by_end on chat_contents (expires_at);
create index chat_contents_by_key on chat_contents (key_id);
create index chat_contents_by_age on chat_contents (created_at);
