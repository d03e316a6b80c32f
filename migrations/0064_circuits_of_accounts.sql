-- A route that fails is closed off for the account that met it; for all accounts only when several met it. An empty
-- account_id is the row for all.
alter table route_health
  add column account_id text not null default '',
  drop constraint route_health_pkey,
  add primary key (route, account_id);
