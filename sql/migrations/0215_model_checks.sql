-- When the catalogue is compared with the lists of others, and what the last comparison found.
-- room: monitoring
create table model_checks (
  id smallint primary key check (id = 1), -- there is one row
  due_at timestamptz not null,
  checked_at timestamptz,
  result jsonb,
  check ((checked_at is null) = (result is null))
);
