-- Whether answers of the responses style are kept for the account.
alter table accounts add column keeps_responses boolean not null default true;

-- An answer of the responses style with its input, to be continued by its id (decision 80). `content` is compressed JSON,
-- encrypted where `key_id` names a key; `json_bytes` is its size before that. `item_ids` are those of its output, which later inputs may name.
-- room: conversations
create table stored_responses (
  account_id text not null references accounts (id),
  id text not null,
  previous_id text,
  item_ids text[] not null,
  key_id text,
  content bytea not null,
  size_bytes integer not null check (size_bytes >= 0),
  json_bytes integer not null check (json_bytes >= 0),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (account_id, id)
);
create index stored_responses_of_items on stored_responses using gin (item_ids) with (fastupdate = off);
create index stored_responses_by_end on stored_responses (expires_at);
create index stored_responses_by_key on stored_responses (key_id);
