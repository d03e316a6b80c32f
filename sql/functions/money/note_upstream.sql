-- Notes that an upstream may have charged for an attempt that did not end the customer's money (p_basis unknown), or
-- that it did not after all (stopped); once per attempt and basis. Locks the account's balance. Returns nothing.
--
-- p_attempt has account_id, ref, number, provider, route, model and kind.
create or replace function note_upstream(p_now timestamptz, p_attempt jsonb, p_basis text) returns void
  language plpgsql set enable_seqscan = off as $$
declare
  b balances;
  e ledger_entries := jsonb_populate_record(null::ledger_entries, p_attempt); -- its number is that of the attempt
  v_event constant text := 'upstream ' || e.number || case p_basis when 'stopped' then ' stopped' else '' end;
begin
  select * into b from balances where account_id = e.account_id for update;
  if b.account_id is null then
    raise exception 'there is no account %', e.account_id using errcode = 'foreign_key_violation';
  elsif exists (select from ledger_entries x
      where x.ref = e.ref and x.event = v_event and x.account_id is not distinct from e.account_id) then
    return;
  end if;
  update balances set entries = b.entries + 1 where account_id = e.account_id;
  insert into ledger_entries (account_id, number, type, ref, event, currency, available, held, available_after,
      held_after, model, kind, month, created_at, provider, route, upstream_basis, upstream_unknown)
    values (e.account_id, b.entries + 1, 'upstream', e.ref, v_event, b.currency, 0, 0, b.amount - b.held, b.held,
      e.model, e.kind, month_of(p_now), p_now, e.provider, e.route, p_basis,
      case p_basis when 'unknown' then 1 else -1 end);
end $$;
