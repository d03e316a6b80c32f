-- How each model served in each hour, for the status page: added up from chat calls and tasks, and kept longer than they are.
-- room: monitoring
create table model_hours (
  model text not null,
  start timestamptz not null,
  calls integer not null check (calls > 0),
  failed integer not null check (failed between 0 and calls),
  first_p50_ms integer check (first_p50_ms >= 0), -- median time to the first word; null where there is none
  total_p50_ms integer check (total_p50_ms >= 0), -- of those that succeeded
  primary key (model, start)
);
create index model_hours_by_start on model_hours (start);
