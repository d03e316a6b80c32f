-- Closes an account's ledger up to an entry, the last one before the month p_month: what comes before is its opening
-- then. p_count is the number of entries that were written to a file; closing fails if it is another, if one of them is
-- of p_month or later, if they do not add up, or if the books or the sums of usage are not as far. One closing of an
-- account waits for another; nobody else does. Returns nothing. The entries are still there: remove_closed.
create or replace function close_ledger(p_account text, p_month date, p_number bigint, p_count bigint) returns void language plpgsql set enable_seqscan = off as $$
declare
  n ledger_openings;
  s record;
  v_last ledger_entries;
begin
  perform pg_advisory_xact_lock(hashtextextended('close ' || p_account, 0)); -- there may be no row to lock yet
  select * into n from ledger_openings where account_id = p_account;
  n.number := coalesce(n.number, 0);
  select count(*) as count, max(created_at) as newest, sum(available)::bigint as available, sum(held)::bigint as held,
         sum(topup_source)::bigint as topup_source, sum(revenue)::bigint as revenue, sum(loss)::bigint as loss,
         sum(adjust)::bigint as adjust, sum(upstream_cost)::bigint as upstream_cost,
         sum(upstream_owed)::bigint as upstream_owed
    into s from ledger_entries where account_id = p_account and number > n.number and number <= p_number;
  select * into v_last from ledger_entries where account_id = p_account and number = p_number;
  if s.count <> p_count or s.count <> p_number - n.number or v_last.number is null then
    raise exception '% of the entries of % up to % are there, and % were exported', s.count, p_account, p_number, p_count;
  elsif s.newest >= p_month::timestamp at time zone 'UTC' then
    raise exception 'an entry of % is of a later month', p_account;
  elsif coalesce(n.available, 0) + s.available <> v_last.available_after
      or coalesce(n.held, 0) + s.held <> v_last.held_after then
    raise exception 'the entries of % do not add up', p_account;
  elsif not exists (select from usage_marks m join book_marks b using (account_id)
      where m.account_id = p_account and least(m.number, m.margins, b.number) >= p_number) then
    raise exception 'the entries of % are not checked and summed yet', p_account;
  end if;
  -- As a whole: a CHECK looks at what is inserted, also where it is an update in the end.
  insert into ledger_openings (account_id, month, number, available, held, topup_source, revenue, loss, adjust,
      upstream_cost, upstream_owed)
    values (p_account, p_month, p_number, v_last.available_after, v_last.held_after,
      coalesce(n.topup_source, 0) + s.topup_source, coalesce(n.revenue, 0) + s.revenue,
      coalesce(n.loss, 0) + s.loss, coalesce(n.adjust, 0) + s.adjust,
      coalesce(n.upstream_cost, 0) + s.upstream_cost, coalesce(n.upstream_owed, 0) + s.upstream_owed)
  on conflict (account_id) do update set month = excluded.month, number = excluded.number,
    available = excluded.available, held = excluded.held, topup_source = excluded.topup_source,
    revenue = excluded.revenue, loss = excluded.loss, adjust = excluded.adjust,
    upstream_cost = excluded.upstream_cost, upstream_owed = excluded.upstream_owed;
  -- What hard budgets count begins behind it then. Under the account's lock, if it has any.
  perform from balances where account_id = p_account and hard_budgets > 0 for update;
  with closed as (
    select a.id, coalesce(sum(e.revenue + e.loss), 0)::bigint as charged
      from account_budgets a left join (ledger_entries e join budgets own on own.key_id = e.key_id
        join budgets k on k.key_id = coalesce(own.shares, own.key_id))
        on e.account_id = a.account_id and e.number > a.since and e.number <= p_number and e.type = 'settle'
          and is_in_budget(a.scope, a.subject, e.project_id, k.key_id, k.member_id)
     where a.account_id = p_account and a.is_hard and a.since < p_number group by a.id),
  marks as (
    update book_budget_marks m set spent = m.spent - c.charged, since = p_number
      from closed c join account_budgets a using (id) where m.budget_id = c.id and m.since = a.since)
  update account_budgets a set opening = a.opening + c.charged, since = p_number from closed c where a.id = c.id;
  insert into ledger_closed_months as m (account_id, month, charged)
    select p_account, date_trunc('month', created_at at time zone 'UTC'), sum(revenue + loss)::bigint
      from ledger_entries
     where account_id = p_account and number > n.number and number <= p_number and type = 'settle' group by 2
  on conflict (account_id, month) do update set charged = m.charged + excluded.charged;
  insert into ledger_closed_keys as k (key_id, month, spent)
    select distinct on (1) coalesce(own.shares, own.key_id), e.month, sum(e.revenue + e.loss)::bigint
      from ledger_entries e join budgets own on own.key_id = e.key_id and own.account_id = e.account_id
     where e.account_id = p_account and e.number > n.number and e.number <= p_number
     group by 1, 2 order by 1, 2 desc
  on conflict (key_id) do update set month = excluded.month,
    spent = excluded.spent + case when k.month = excluded.month then k.spent else 0 end;
end $$;
