-- At which percentages of a budget people hear of it; none: at no one of them. Nodes of the version before send none, and
-- budgets have all three.
alter table account_budgets
  add column alert_percents smallint[] not null default '{50,80,100}'
    check (alert_percents <@ '{50,80,100}'::smallint[] and cardinality(alert_percents) <= 3);
