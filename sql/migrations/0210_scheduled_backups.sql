-- Backups that the service makes by itself. A backup does not have this table: it says nothing of a restored database.
-- room: backup
create table scheduled_backups (
  id text primary key, -- the name of its folder
  place text not null, -- the folder or the bucket in which that is
  host text not null,
  started_at timestamptz not null, -- the moment that it shows is a little later
  ended_at timestamptz,
  state text not null check (state in ('running', 'done', 'failed', 'removed')),
  size_bytes bigint check (size_bytes >= 0),
  error text, -- why it failed
  check ((state = 'running') = (ended_at is null)),
  check ((state = 'failed') = (error is not null)),
  check (state not in ('done', 'removed') or size_bytes is not null)
);
create index scheduled_backups_by_time on scheduled_backups (started_at);
