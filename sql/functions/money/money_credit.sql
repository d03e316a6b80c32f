-- Books money in (type topup) or a correction by an operator (either sign, never below what is available). Locks the
-- account's balance, and notifies the nodes of a withdrawal in the same commit. Returns outcome booked; exists (this
-- type and ref was booked before); conflict (it was, with another amount); insufficient; too_large (more than a
-- billion); leased (nodes have leased what it takes, and are asked for it: try again in a moment).
create or replace function money_credit(
  p_now timestamptz, p_account text, p_type text, p_amount bigint, p_ref text, p_reason text,
  out outcome text, out available bigint
) language plpgsql set enable_seqscan = off as $$
declare
  b balances;
  booked bigint;
  v_free bigint;
begin
  select * into b from balances where account_id = p_account for update;
  if b.account_id is null then
    raise exception 'there is no account %', p_account using errcode = 'foreign_key_violation';
  elsif p_amount is null or p_amount = 0 or p_type = 'topup' and p_amount < 0 then
    raise exception 'a % of % is not an amount', p_type, p_amount using errcode = 'numeric_value_out_of_range';
  end if;
  available := b.amount - b.held;
  v_free := available - b.exposed;
  select e.available into booked from ledger_entries e
    where e.ref = p_ref and e.event = p_type and e.account_id is not distinct from p_account;
  if booked is not null then
    outcome := case when booked = p_amount then 'exists' else 'conflict' end;
  elsif p_amount < -v_free then
    outcome := 'insufficient';
  elsif p_amount < 0 and p_amount < (select others + lost from lease_state(p_account, 'money', null, now())) - v_free then
    outcome := 'leased';
    perform recall_leases(p_account, 'money', now());
  elsif p_amount > 1000000000000000 - b.amount then
    outcome := 'too_large';
  else
    outcome := 'booked';
    available := available + p_amount;
    update balances set amount = b.amount + p_amount, entries = b.entries + 1 where account_id = p_account;
    insert into ledger_entries (account_id, number, type, ref, event, currency, available, held, topup_source, adjust,
        available_after, held_after, reason, month, created_at)
      values (p_account, b.entries + 1, p_type, p_ref, p_type, b.currency, p_amount, 0,
        case p_type when 'topup' then -p_amount else 0 end, case p_type when 'topup' then 0 else -p_amount end,
        available, b.held, p_reason, month_of(p_now), p_now);
    if p_amount < 0 then
      perform pg_notify('money_changed', p_account);
    end if;
  end if;
end $$;
