-- Conversations of the playground that a person keeps on the server, for all of their browsers. They go with the
-- membership, and by that with the person and with the account.
-- module: contents
create table playground_owners (
  account_id text not null,
  user_id text not null,
  epoch text not null, -- another one after everything was removed: browsers begin anew
  is_on boolean not null,
  version integer not null default 0 check (version >= 0), -- of the last change of any conversation
  created_at timestamptz not null,
  primary key (account_id, user_id),
  foreign key (user_id, account_id) references auth.member ("userId", "organizationId") on delete cascade
);

-- A conversation without its content. `version` is that of its owner at its last change; 0: only files have arrived.
-- module: contents
create table playground_conversations (
  account_id text not null,
  user_id text not null,
  id text not null check (id ~ '^[0-9a-f]{24}$'), -- chosen by a browser
  version integer not null check (version >= 0),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  expires_at timestamptz not null,
  deleted_at timestamptz, -- a tombstone: copies in browsers go, and none comes back
  primary key (account_id, user_id, id),
  foreign key (account_id, user_id) references playground_owners (account_id, user_id) on delete cascade
);
create index playground_conversations_by_version on playground_conversations (account_id, user_id, version);
create index playground_conversations_by_end on playground_conversations (expires_at);
create index playground_conversations_by_change on playground_conversations (updated_at) where deleted_at is null;

-- What is encrypted of a conversation: its line of the list, its turns, and its files, a row each.
-- module: contents
create table playground_contents (
  account_id text not null,
  user_id text not null,
  id text not null, -- the conversation, and `line`, `turns` or the id of a file
  conversation_id text not null,
  key_id text,
  content bytea not null,
  size_bytes integer not null check (size_bytes >= 0), -- before it was compressed
  created_at timestamptz not null,
  primary key (account_id, user_id, id),
  foreign key (account_id, user_id, conversation_id)
    references playground_conversations (account_id, user_id, id) on delete cascade
);
create index playground_contents_by_conversation on playground_contents (account_id, user_id, conversation_id);
create index playground_contents_by_key on playground_contents (key_id);
