-- Raises the number by which nodes see that keys or accounts have changed. Runs in the transaction of the change, so
-- that whoever reads the new number reads the change too. The row of the number is locked until that transaction ends.
create or replace function note_caller_change() returns trigger language plpgsql as $$
begin
  update callers_version set version = version + 1;
  return null;
end $$;

create or replace trigger callers_change
  after update of id, account_id, name, hash, deleted_at, expires_at, scopes, addresses, models, requests_per_minute
    or delete on api_keys
  for each statement execute function note_caller_change();
create or replace trigger callers_change after update of id, name, currency, status or delete on accounts
  for each statement execute function note_caller_change();
