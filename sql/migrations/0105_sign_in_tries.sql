-- Tries of a password or a code, so that waits after wrong ones hold on every node (take_try).
-- room: limits
create table sign_in_tries (
  name bytea primary key, -- SHA-256 of what is tried, and where from: no address of anybody
  count integer not null check (count > 0), -- wrong ones, and those that are being looked at
  last_at timestamptz not null
);
create index sign_in_tries_by_time on sign_in_tries (last_at);
