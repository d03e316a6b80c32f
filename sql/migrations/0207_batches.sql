-- A file of calls that workers make within a day (OpenAI's batches). Whoever works on it has the `claim`; what a former
-- worker still does counts no more. `output_id` and `error_id` are the ids of its files from the moment in which they are
-- made, so that making them again makes the same ones.
-- room: batches
create table batches (
  account_id text not null references accounts,
  id text not null,
  key_id text not null references api_keys,
  endpoint text not null,
  input_file_id text not null,
  status text not null default 'validating' check (
    status in ('validating', 'failed', 'in_progress', 'finalizing', 'completed', 'expired', 'cancelling', 'cancelled')),
  claim text,
  errors jsonb,
  metadata jsonb not null default '{}',
  keep_s bigint not null check (keep_s > 0), -- lifetime of its files
  total int not null default 0,
  completed int not null default 0,
  failed int not null default 0,
  output_id text,
  error_id text,
  has_output boolean not null default false,
  has_errors boolean not null default false,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  in_progress_at timestamptz,
  finalizing_at timestamptz,
  cancelling_at timestamptz,
  ended_at timestamptz,
  primary key (account_id, id),
  check ((ended_at is not null) = (status in ('failed', 'completed', 'expired', 'cancelled')))
);
create index batches_unfinished on batches (account_id) where ended_at is null;
create index batches_by_end on batches (ended_at) where ended_at is not null;

-- One call of a batch that has not ended, by the place of its line in the input file. `sent`: an upstream may have it;
-- `answered`: its answer is stored with its charge, which may not be booked yet; `done`: nothing is left to do.
-- room: batches
create table batch_lines (
  account_id text not null,
  batch_id text not null,
  number int not null,
  custom_id text not null,
  start_bytes bigint not null,
  size_bytes int not null,
  state text not null default 'waiting' check (state in ('waiting', 'sent', 'answered', 'done')),
  claim text,
  attempts int not null default 0,
  not_before timestamptz not null,
  request_id text,
  status_code int,
  result bytea, -- the body of the answer, as the caller would have got it
  error_code text, -- of a line that was not answered
  charge jsonb, -- what is to be booked
  primary key (account_id, batch_id, number),
  foreign key (account_id, batch_id) references batches (account_id, id) on delete cascade,
  check ((state in ('answered', 'done')) = (status_code is not null or error_code is not null))
);
create index batch_lines_open on batch_lines (account_id, batch_id, state, not_before, number) where state <> 'done';
