-- Revenue and upstream costs of whole months and of their days, summed like usage_sums, as far as usage_marks.margins
-- says. Model, provider and route are '' where there is none.
-- room: money
create table margin_sums (
  account_id text not null,
  month date not null, -- the one in which the entries count
  step text not null check (step in ('month', 'day')),
  start date not null, -- the day; of a month its first day
  model text not null,
  provider text not null,
  route text not null,
  base_currency text not null, -- '' where the cost is not known
  runs bigint not null,
  revenue bigint not null,
  upstream_cost bigint not null,
  base bigint not null,
  unknown bigint not null,
  primary key (account_id, month, step, start, model, provider, route, base_currency)
);
create index margin_sums_by_month on margin_sums (month, step);
alter table usage_marks add column margins bigint not null default 0;
