-- Finds a moment in an account's entries: returns the number of the last one that was made before p_at less an hour, or
-- up to p_at and an hour where p_later. Locks nothing and looks at some twenty entries.
--
-- Entries are numbered in the order in which they got the account's lock, and each has the time at which its call
-- began: seconds apart at most, since a lock is not waited for longer. An index by time would cost every movement.
-- Exact limits are for the caller.
create or replace function entry_near(p_account text, p_at timestamptz, p_later boolean) returns bigint stable language plpgsql
  set enable_seqscan = off as $$
declare
  v_at constant timestamptz := p_at + case when p_later then interval '1 hour' else interval '-1 hour' end;
  -- Made before v_at, or none: what was closed may be gone.
  v_low bigint := coalesce((select number from ledger_openings where account_id = p_account), 0);
  v_high bigint; -- made later, or behind the last
  v_middle bigint;
begin
  select entries + 1 into v_high from balances where account_id = p_account;
  while v_low + 1 < v_high loop
    v_middle := (v_low + v_high) / 2;
    if (select created_at from ledger_entries where account_id = p_account and number = v_middle) < v_at then
      v_low := v_middle;
    else
      v_high := v_middle;
    end if;
  end loop;
  return v_low;
end $$;
