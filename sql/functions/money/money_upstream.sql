-- Notes that an upstream may have charged for an attempt that did not end the customer's money (p_basis unknown), or
-- that it did not after all (stopped); once per attempt (p_number) and basis. Locks the account's balance. Returns
-- nothing.
create or replace function money_upstream(
  p_now timestamptz, p_account text, p_ref text, p_number text, p_provider text, p_route text, p_model text, p_kind text,
  p_basis text
) returns void language plpgsql set enable_seqscan = off as $$
declare
  b balances;
  v_event constant text := 'upstream ' || p_number || case p_basis when 'stopped' then ' stopped' else '' end;
begin
  select * into b from balances where account_id = p_account for update;
  if b.account_id is null then
    raise exception 'there is no account %', p_account using errcode = 'foreign_key_violation';
  elsif exists (select from ledger_entries e where e.ref = p_ref and e.event = v_event and e.account_id is not distinct from p_account) then
    return;
  end if;
  update balances set entries = b.entries + 1 where account_id = p_account;
  insert into ledger_entries (account_id, number, type, ref, event, currency, available, held, available_after, held_after,
      model, kind, month, created_at, provider, route, upstream_basis, upstream_unknown)
    values (p_account, b.entries + 1, 'upstream', p_ref, v_event, b.currency, 0, 0, b.amount - b.held, b.held,
      p_model, p_kind, month_of(p_now), p_now, p_provider, p_route, p_basis, case p_basis when 'unknown' then 1 else -1 end);
end $$;
