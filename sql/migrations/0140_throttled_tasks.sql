-- Tasks that wait, without a job, until a provider has room for their run; and routes whose upstream says that it is full.

-- One row per route that a task waits for. With promoted_at, a run of the route's provider is reserved for the task, and
-- its job takes it.
-- room: tasks
create table throttled_tasks (
  account_id text not null,
  task_id text not null,
  route text not null, -- MODEL#ROUTE
  provider text not null,
  since timestamptz not null, -- when the task was created
  give_up_at timestamptz not null,
  promoted_at timestamptz,
  primary key (account_id, task_id, route),
  foreign key (account_id, task_id) references tasks (account_id, id) on delete cascade
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
create index throttled_tasks_waiting on throttled_tasks (provider, account_id, since) where promoted_at is null;
create index throttled_tasks_promoted on throttled_tasks (provider, account_id) where promoted_at is not null;
create index throttled_tasks_by_end on throttled_tasks (give_up_at);

-- A route whose upstream has said that it is full, until that is a minute past. is_firm: it has said for how long.
-- room: tasks
create table full_routes (
  route text primary key,
  provider text not null,
  refusals integer not null, -- one after the other
  refused_at timestamptz not null,
  retry_at timestamptz not null,
  is_firm boolean not null
);

-- Runs that a provider has, and those that were begun there lately.
-- room: tasks
create index attempts_active on attempts (provider, account_id) where ended_at is null;
create index attempts_begun on attempts (provider, created_at);
