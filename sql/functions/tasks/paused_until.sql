-- Returns when the account may create tasks again; null if it may now. A run that started and failed counts for 24
-- hours, and with p_failures_max of them the oldest of these has to grow old first. Locks nothing.
create or replace function paused_until(p_now timestamptz, p_account text, p_failures_max int) returns timestamptz
stable language sql as $$
  select t.completed_at + interval '24 hours' from tasks t
    where t.account_id = p_account and t.counts_as_failure and t.completed_at > p_now - interval '24 hours'
    order by t.completed_at desc offset p_failures_max - 1 limit 1
$$;
