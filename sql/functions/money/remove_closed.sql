-- Removes those of an account's next p_limit numbers behind p_after whose entries are closed. Locks nothing but them.
-- Returns how many went, and the last number that it came to, which is null behind the opening.
create or replace function remove_closed(
  p_account text, p_after bigint, p_limit bigint,
  out last bigint, out removed int
) language plpgsql set enable_seqscan = off as $$
begin
  select least(number, p_after + p_limit) into last from ledger_openings where account_id = p_account and number > p_after;
  delete from ledger_entries e where e.account_id = p_account and e.number > p_after and e.number <= last and is_closed(e);
  get diagnostics removed = row_count;
end $$;
