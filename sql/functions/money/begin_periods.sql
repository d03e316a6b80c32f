-- Begins a new period of the account's hard budgets whose period is over: nothing is spent of it yet, what is held goes
-- on. p_entries is the number of the account's last entry. Whoever calls it has the lock of the account's balance. A
-- node whose clock is behind counts in the period that has begun.
create or replace function begin_periods(p_account text, p_now timestamptz, p_entries bigint) returns void
language plpgsql set enable_seqscan = off as $$
begin
  update account_budgets
    set period_start = period_begin(period, p_now), spent = 0, opening = 0, since = p_entries, allowed = held + exposed
    where account_id = p_account and is_hard and period_start < period_begin(period, p_now);
end $$;
