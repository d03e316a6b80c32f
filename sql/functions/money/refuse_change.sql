-- Refuses every change of the ledger, but the removal of entries of months that were closed.
create or replace function refuse_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and is_closed(old) then
    return old;
  end if;
  raise exception 'ledger entries are never changed or deleted' using errcode = 'restrict_violation';
end $$;

create or replace trigger ledger_entries_immutable before update or delete on ledger_entries
  for each row execute function refuse_change();
create or replace trigger ledger_entries_not_truncated before truncate on ledger_entries
  for each statement execute function refuse_change();
