-- The processes that run the service, as far as they say that they are alive.

-- room: engine
create table nodes (
  id text primary key, -- of one process: the next start is another node
  host text not null,
  pid int not null,
  role text not null,
  version text not null,
  started_at timestamptz not null,
  seen_at timestamptz not null,
  running jsonb not null default '{}', -- queue → jobs in hand
  is_paused boolean not null default false -- an operator wants it to take nothing new
);

-- Failed tries of routes by time, for the operator: few of all tries, so that ending one that succeeded costs nothing.
create index attempts_gone_wrong on attempts (ended_at) where state in ('failed', 'not_started', 'ambiguous', 'abandoned');
