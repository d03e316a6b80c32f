-- Addresses that an account has registered for its events, beside the webhook_url of a task (decision 118).
-- room: webhooks
create table webhook_endpoints (
  account_id text not null references accounts (id),
  id text not null,
  url text not null check (length(url) between 1 and 2048),
  lane text not null, -- as in deliveries: account and address without its query
  host text not null,
  description text not null default '' check (length(description) <= 200),
  events text[] not null check (cardinality(events) between 1 and 50), -- task.failed, all of a kind as task.*, or *
  models text[] check (cardinality(models) between 1 and 50), -- these three narrow events of tasks; null: any
  key_ids text[] check (cardinality(key_ids) between 1 and 50),
  pairs text[] check (cardinality(pairs) between 1 and 16), -- "name":"value", as the JSON text of a task's metadata has it
  enabled boolean not null default true,
  disabled_reason text check (disabled_reason in ('manual', 'failing', 'gone')),
  disabled_at timestamptz,
  secret text not null check (secret like 'whsec\_%'),
  secret_before text check (secret_before like 'whsec\_%'),
  secret_rotated_at timestamptz,
  failing_since timestamptz, -- the first failed attempt since one arrived
  last_failed_at timestamptz,
  last_delivered_at timestamptz,
  created_at timestamptz not null,
  changed_at timestamptz not null, -- which events it gets
  primary key (account_id, id),
  check (enabled = (disabled_reason is null) and enabled = (disabled_at is null)),
  check ((secret_before is null) = (secret_rotated_at is null)),
  check (failing_since is null or last_failed_at is not null)
);

-- An event that an endpoint of its account asks for, with the bytes of every attempt of each of its deliveries.
-- room: webhooks
create table webhook_events (
  account_id text not null references accounts (id),
  id text not null,
  type text not null,
  task_id text,
  model text, -- these three: of the task, for filters when it is delivered later
  key_id text,
  metadata text,
  traceparent text,
  body text not null,
  created_at timestamptz not null,
  primary key (account_id, id)
);
create unique index webhook_events_of_task on webhook_events (account_id, task_id) where task_id is not null;
create index webhook_events_by_time on webhook_events (created_at);

-- A delivery to an endpoint has no body and no task of its own: its event has. It takes the secret of the endpoint.
-- Replayed: it waits behind those that nobody has asked for again.
alter table deliveries add column endpoint_id text, add column event_id text, add column replayed boolean not null default false;
create index if not exists deliveries_of_endpoint on deliveries (account_id, endpoint_id, id) where endpoint_id is not null;
create unique index if not exists deliveries_of_event on deliveries (account_id, event_id, endpoint_id) where event_id is not null;
alter table deliveries drop constraint deliveries_event_check;
alter table deliveries add constraint deliveries_event_check check (event ~ '^[a-z_]+\.[a-z_]+$' and length(event) <= 60);
