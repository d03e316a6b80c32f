-- Writes an attempt down before the upstream is called. Locks the task against a finish that is under way. Returns
-- false if the task is final by now, or another attempt of it is open.
create or replace function open_attempt(
  p_now timestamptz, p_account text, p_id text, p_number int, p_claim text, p_route text, p_provider text, p_settings text
) returns boolean language plpgsql as $$
begin
  perform from tasks where account_id = p_account and id = p_id and completed_at is null for share;
  if not found then
    return false;
  end if;
  insert into attempts (account_id, task_id, number, route, provider, route_settings, claim, created_at)
    values (p_account, p_id, p_number, p_route, p_provider, p_settings, p_claim, p_now)
    on conflict do nothing;
  return found or exists (select from attempts
    where account_id = p_account and task_id = p_id and number = p_number and claim = p_claim and ended_at is null);
end $$;
