-- Finds the end of an account's months before p_at: returns the number of the last entry up to which none was made
-- later. Locks nothing.
create or replace function last_entry_before(p_account text, p_at timestamptz) returns bigint stable language plpgsql
  set enable_seqscan = off as $$
declare
  v_low constant bigint := entry_near(p_account, p_at, false);
  v_high constant bigint := entry_near(p_account, p_at, true);
begin
  return coalesce((select min(number) - 1 from ledger_entries
    where account_id = p_account and number > v_low and number <= v_high and created_at >= p_at), v_high);
end $$;
