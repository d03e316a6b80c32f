-- Reserves runs of the provider for tasks that wait, as many as it has room for by p_limits {max_active, per_minute}, and
-- sends their jobs: first of the account that has the fewest runs there, of several such the one whose last run began
-- longest ago (among the newest 200 of the provider), and of an account the oldest. A route whose upstream has said that
-- it is full gets one task. Locks the provider; a task that somebody has locked is left for the next call. Returns how many
-- tasks got a run.
--
-- The accounts that wait are found one by one in the index, however many tasks each of them has.
create or replace function promote_tasks(p_now timestamptz, p_provider text, p_limits jsonb) returns int
  language plpgsql set enable_seqscan = off as $$
declare
  k throttled_tasks;
  v_room bigint;
  v_closed text[];
  v_locked text[] := '{}';
  v_promoted int := 0;
begin
  perform lock_provider(p_provider);
  delete from full_routes f
    where f.provider = p_provider and greatest(f.refused_at, f.retry_at) < p_now - interval '60 seconds';
  v_room := coalesce(provider_room(p_now, p_provider, p_limits), 1000);
  v_closed := closed_routes(p_now, p_provider);
  while v_room > 0 loop
    with recursive waiting (account_id) as (
      (select x.account_id from throttled_tasks x where x.provider = p_provider and x.promoted_at is null
        order by x.account_id limit 1)
      union all
      select (select x.account_id from throttled_tasks x
        where x.provider = p_provider and x.promoted_at is null and x.account_id > w.account_id
        order by x.account_id limit 1)
      from waiting w where w.account_id is not null)
    select first.* into k from waiting w, lateral (
        select * from throttled_tasks x
          where x.provider = p_provider and x.promoted_at is null and x.account_id = w.account_id
            and x.route <> all(v_closed) and x.task_id <> all(v_locked)
          order by x.since, x.task_id limit 1) first
      where w.account_id is not null
      order by (select count(*) from attempts a
            where a.provider = p_provider and a.account_id = w.account_id and a.ended_at is null)
          + (select count(*) from throttled_tasks x
            where x.provider = p_provider and x.account_id = w.account_id and x.promoted_at is not null),
        (select max(n.created_at) from (select a.account_id, a.created_at from attempts a
            where a.provider = p_provider order by a.created_at desc limit 200) n
          where n.account_id = w.account_id) nulls first,
        first.since, first.task_id
      limit 1;
    exit when k.account_id is null;
    perform from tasks t where t.account_id = k.account_id and t.id = k.task_id for update skip locked;
    if found then
      delete from throttled_tasks x
        where x.account_id = k.account_id and x.task_id = k.task_id and x.route <> k.route;
      update throttled_tasks x set promoted_at = p_now
        where x.account_id = k.account_id and x.task_id = k.task_id and x.route = k.route and x.promoted_at is null;
    end if;
    if not found then
      v_locked := v_locked || k.task_id;
      continue;
    end if;
    perform engine_send('task.start', jsonb_build_object('account_id', k.account_id, 'task_id', k.task_id), null, k.task_id);
    v_room := v_room - 1;
    v_promoted := v_promoted + 1;
    if exists (select from full_routes f where f.route = k.route) then
      v_closed := v_closed || k.route;
    end if;
  end loop;
  return v_promoted;
end $$;
