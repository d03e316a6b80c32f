-- Accounts with a hundred thousand keys: lists of keys by their project, counts of projects, and keys near their limit
-- read the budgets of one account only. Neither index has a column that changes while money moves, so updates of a budget
-- stay on their page. Keys that share a budget are few: those that were rotated.
create index if not exists budgets_by_project on budgets (account_id, (coalesce(project_id, 'default')));
create index if not exists api_keys_of_budget on api_keys (budget_id) where budget_id is not null;
