-- Tells whether an account may have one more file of this size: files that were uploaded and sessions that are pending
-- count, but for the session p_session. Locks the account's files, so that what comes at the same time counts too.
-- Returns null, too_many or too_much.
create or replace function files_problem(
  p_account text, p_session text, p_size_bytes bigint, p_count_max int, p_size_bytes_max bigint
) returns text language plpgsql as $$
declare
  used record;
begin
  perform pg_advisory_xact_lock(hashtextextended('files ' || p_account, 0));
  select count(*) as files, coalesce(sum(size_bytes), 0) as bytes into used from (
    select size_bytes from files where account_id = p_account and task_id is null and expires_at > created_at
    union all
    select greatest(size_bytes, received_bytes) from upload_sessions
     where account_id = p_account and state = 'pending' and id is distinct from p_session
  ) counted;
  if used.files >= p_count_max then
    return 'too_many';
  elsif used.bytes + p_size_bytes > p_size_bytes_max then
    return 'too_much';
  end if;
  return null;
end $$;
