-- Makes a budget, or changes the name, amount and hardness of one: p_budget has id, account_id, name, scope, subject,
-- period, amount, is_hard and perhaps alert_percents. A hard budget that was none counts what was spent since its
-- period began, and all open holds. Locks the account's balance, and notifies the nodes in the same commit. Returns
-- outcome set; crowded (the account has p_max of them); or leased: nodes have leased money of the account, which a hard
-- budget must not leave to them: they are asked for it, so try again in a moment, in another transaction.
create or replace function set_account_budget(p_now timestamptz, p_budget jsonb, p_max int) returns text
language plpgsql set enable_seqscan = off as $$
declare
  n account_budgets := jsonb_populate_record(null::account_budgets, p_budget);
  old account_budgets;
  b balances;
begin
  select * into b from balances where account_id = n.account_id for update;
  if b.account_id is null then
    raise exception 'there is no account %', n.account_id using errcode = 'foreign_key_violation';
  end if;
  perform begin_periods(n.account_id, p_now, b.entries);
  select * into old from account_budgets where id = n.id and account_id = n.account_id;
  if old.id is null and (select count(*) from account_budgets where account_id = n.account_id) >= p_max then
    return 'crowded';
  end if;
  if n.is_hard and b.hard_budgets = 0
      and (select others from lease_state(n.account_id, 'money', null, now())) > 0 then
    perform recall_leases(n.account_id, 'money', now());
    return 'leased';
  end if;
  if old.id is not null then
    n.scope := old.scope;
    n.subject := old.subject;
    n.period := old.period;
    n.created_at := old.created_at;
  else
    n.created_at := p_now;
  end if;
  n.alert_percents := coalesce(n.alert_percents, old.alert_percents, '{50,80,100}');
  n.period_start := period_begin(n.period, p_now);
  n.opening := 0;
  n.spent := 0;
  n.held := 0;
  n.exposed := 0;
  n.since := b.entries;
  if n.is_hard and old.is_hard then
    n.period_start := old.period_start;
    n.opening := old.opening;
    n.spent := old.spent;
    n.held := old.held;
    n.exposed := old.exposed;
    n.since := old.since;
  elsif n.is_hard then
    n.opening := budget_spent(n.account_id, n.scope, n.subject, n.period_start);
    n.spent := n.opening;
    update open_holds h set budget_ids = array_append(array_remove(h.budget_ids, n.id), n.id)
      from budgets own join budgets k on k.key_id = coalesce(own.shares, own.key_id)
      where h.account_id = n.account_id and own.key_id = h.key_id
        and is_in_budget(n.scope, n.subject, h.project_id, k.key_id, k.member_id);
    select coalesce(sum(h.amount), 0), coalesce(sum(h.exposed), 0) into n.held, n.exposed
      from open_holds h where h.account_id = n.account_id and n.id = any (h.budget_ids);
  end if;
  n.allowed := n.spent + n.held + n.exposed;
  if old.id is null then
    insert into account_budgets select n.*;
  else
    update account_budgets set name = n.name, amount = n.amount, is_hard = n.is_hard,
        alert_percents = n.alert_percents, period_start = n.period_start, spent = n.spent, held = n.held,
        exposed = n.exposed, opening = n.opening, since = n.since, allowed = n.allowed
      where id = n.id;
  end if;
  perform count_hard_budgets(n.account_id);
  return 'set';
end $$;
