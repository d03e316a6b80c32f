-- Lets a task wait, without a job, for room on one of p_routes, [{route, provider}]. Locks the task. Returns false if it
-- is final by now, or has an open attempt.
create or replace function throttle_task(p_account text, p_id text, p_routes jsonb, p_give_up_at timestamptz) returns boolean
  language plpgsql as $$
declare
  v_since timestamptz;
begin
  select t.created_at into v_since from tasks t
    where t.account_id = p_account and t.id = p_id and t.completed_at is null for update;
  if not found or exists (select from attempts a
      where a.account_id = p_account and a.task_id = p_id and a.ended_at is null) then
    return false;
  end if;
  delete from throttled_tasks k where k.account_id = p_account and k.task_id = p_id;
  insert into throttled_tasks (account_id, task_id, route, provider, since, give_up_at)
    select p_account, p_id, r.route, r.provider, v_since, p_give_up_at
      from jsonb_to_recordset(p_routes) as r (route text, provider text)
    on conflict do nothing;
  return true;
end $$;
