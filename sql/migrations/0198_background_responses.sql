-- A response that a worker makes while nobody is connected (decision 88). It is unfinished until `done_at`: a worker begins
-- it (`claim`), asks an upstream (`sent_at`, and by which route) and says that it is there (`seen_at`); `completed_at` is
-- when its status became final, together with `ended`, which says what is still to be done: money, record, conversation.
-- room: conversations
create table background_responses (
  account_id text not null references accounts (id),
  id text not null,
  request_id text not null,
  model text not null,
  currency text not null,
  max_tokens integer not null,
  is_streamed boolean not null,
  status text not null check (status in ('queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled')),
  cancel_requested boolean not null default false,
  claim text,
  sent_at timestamptz,
  sent_provider text,
  sent_route text,
  seen_at timestamptz,
  suspected_at timestamptz,
  ended jsonb,
  created_at timestamptz not null,
  begin_before timestamptz not null,
  completed_at timestamptz,
  done_at timestamptz,
  expires_at timestamptz not null,
  primary key (account_id, id),
  check ((status in ('queued', 'in_progress')) = (completed_at is null)),
  check ((ended is null) = (completed_at is null)),
  check (sent_at is null or claim is not null),
  check (done_at is null or completed_at is not null)
);
create index background_responses_unfinished on background_responses (account_id, created_at) where done_at is null;
create index background_responses_by_end on background_responses (expires_at);

-- Its request, until it has ended; its response; and the events of its stream, in parts: `first_event` and `last_event` are
-- their numbers. `content` is compressed, and encrypted where `key_id` names a key.
-- room: conversations
create table background_contents (
  account_id text not null,
  response_id text not null,
  id text not null,
  first_event integer,
  last_event integer,
  key_id text,
  content bytea not null,
  json_bytes integer not null check (json_bytes >= 0),
  primary key (account_id, response_id, id),
  foreign key (account_id, response_id) references background_responses (account_id, id) on delete cascade
);
create index background_contents_by_key on background_contents (key_id);
