-- The budget that a key uses, if it is not its own: it was made by a rotation, and shares that of the first key. The same
-- as budgets.shares, where callers are looked up. Keys that were rotated before keep the budgets that they have.
alter table api_keys add column budget_id text references api_keys;
