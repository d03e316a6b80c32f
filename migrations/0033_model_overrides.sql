-- What operators changed about models while the service runs: whether one takes work, in which order its
-- routes are tried, which of them take nothing new. Everything else about models stands in the
-- configuration, and so does all of this where there is no row (decision 19).

-- room: catalog
create table model_overrides (
  model text primary key, -- may be in the configuration no more; counts again when it comes back
  is_off boolean not null default false,
  route_order text[] not null default '{}', -- ids; those that are not named follow in their own order
  drained text[] not null default '{}',     -- ids
  updated_at timestamptz not null
);
