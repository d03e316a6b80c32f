-- room: webhooks
-- A delivery by its id alone, and the newest ones of all accounts.
create index deliveries_by_id on deliveries (id);
