-- What callers think of a chat call or a task: one score for each metric and end user.
-- room: feedback
create table feedback (
  account_id text not null references accounts (id) on delete cascade,
  id text not null,
  reference_id text not null, -- of the call or the task
  name text not null check (length(name) between 1 and 64), -- of the metric
  end_user text not null check (length(end_user) <= 256), -- empty: nobody was named
  score double precision not null check (score between -1 and 1),
  comment text check (length(comment) <= 4000),
  tags text[] not null,
  metadata jsonb not null,
  key_id text, -- null: given in the dashboard
  referred_at timestamptz not null, -- when the call or the task began: feedback is removed with its record
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (account_id, id),
  unique (account_id, reference_id, name, end_user)
);
create index feedback_by_time on feedback (referred_at);
create index feedback_of_account_by_time on feedback (account_id, referred_at);
