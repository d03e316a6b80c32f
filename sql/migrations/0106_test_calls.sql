-- Test calls of operators, so that every node can tell what became of them.
-- room: test-calls
create table test_calls (
  id text primary key,
  route text not null, -- MODEL#ROUTE
  currency text not null,
  begun_at timestamptz not null,
  over_at timestamptz not null, -- by then it is over, whatever became of its node
  result jsonb, -- null: it runs, or its node died
  constraint soon_over check (over_at >= begun_at)
);
create unique index test_calls_running on test_calls (route) where result is null;

-- A file that a call made.
-- room: test-calls
create table test_call_files (
  test_call_id text not null references test_calls on delete cascade,
  index integer not null,
  bytes bytea not null,
  primary key (test_call_id, index)
);
alter table test_call_files alter column bytes set storage external; -- images and videos are small already
