-- Counts a try of p_name. Returns how long it has to wait instead, in milliseconds: 0 if it may go on. Five are free, then
-- each waits twice as long as the one before, up to 15 minutes; those of more than an hour ago are forgotten. A try that
-- has to wait neither counts nor lengthens the wait.
--
-- Locks the row of the name, so that of tries at once on several nodes no two count as one.
create or replace function take_try(p_name bytea, p_now timestamptz) returns float8 language plpgsql as $$
declare
  v_free constant integer := 5;
  v_longest_s constant integer := 900;
  v_try sign_in_tries;
  v_wait_s numeric;
begin
  insert into sign_in_tries (name, count, last_at) values (p_name, 1, p_now) on conflict (name) do nothing;
  if found then
    return 0;
  end if;
  select * into v_try from sign_in_tries where name = p_name for update;
  if not found then
    return take_try(p_name, p_now); -- it was right, and forgiven, a moment ago
  end if;
  if v_try.last_at <= p_now - interval '1 hour' then
    v_try.count := 0;
  end if;
  v_wait_s := case when v_try.count < v_free then 0 else least(v_longest_s, power(2::numeric, least(v_try.count - v_free, 10))) end;
  v_wait_s := v_wait_s - extract(epoch from p_now - v_try.last_at);
  if v_try.count >= v_free and v_wait_s > 0 then
    return ceil(v_wait_s * 1000);
  end if;
  update sign_in_tries set count = v_try.count + 1, last_at = greatest(last_at, p_now) where name = p_name;
  return 0;
end $$;
