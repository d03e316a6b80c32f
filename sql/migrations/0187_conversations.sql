-- A conversation of the responses style (decision 87). `content` is its metadata, compressed JSON, encrypted where
-- `key_id` names a key. `items`, `size_bytes` and `json_bytes` are of all its items together, as they are stored and as JSON;
-- `next_place` is that of its next item. `turn` names the call that is in progress, until `turn_until`.
-- room: conversations
create table conversations (
  account_id text not null references accounts (id),
  id text not null,
  key_id text,
  content bytea not null,
  items integer not null default 0 check (items >= 0),
  size_bytes bigint not null default 0 check (size_bytes >= 0),
  json_bytes bigint not null default 0 check (json_bytes >= 0),
  next_place bigint not null default 0,
  turn text,
  turn_until timestamptz,
  created_at timestamptz not null,
  used_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (account_id, id),
  check ((turn is null) = (turn_until is null))
);
create index conversations_by_end on conversations (expires_at);
create index conversations_by_key on conversations (key_id);

-- room: conversations
create table conversation_items (
  account_id text not null,
  conversation_id text not null,
  place bigint not null,
  id text not null,
  key_id text,
  content bytea not null,
  json_bytes integer not null check (json_bytes >= 0),
  primary key (account_id, conversation_id, place),
  unique (account_id, conversation_id, id),
  foreign key (account_id, conversation_id) references conversations (account_id, id) on delete cascade
);
create index conversation_items_by_key on conversation_items (key_id);
