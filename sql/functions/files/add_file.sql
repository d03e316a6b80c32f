-- Writes a file down before its bytes are stored, unless the account has too many of them. An advisory lock makes
-- uploads of one account count one another; files of a task's input are not counted. Returns added, too_many or
-- too_much.
create or replace function add_file(
  p_now timestamptz, p_account text, p_id text, p_key text, p_task text, p_filename text, p_purpose text,
  p_storage_key text, p_kind text, p_content_type text, p_size_bytes bigint, p_width int, p_height int,
  p_duration_ms int, p_expires_at timestamptz, p_count_max int, p_size_bytes_max bigint
) returns text language plpgsql as $$
declare
  used record;
begin
  if p_task is null then
    perform pg_advisory_xact_lock(hashtextextended('files ' || p_account, 0));
    select count(*) as files, coalesce(sum(size_bytes), 0) as bytes into used from files
      where account_id = p_account and task_id is null and expires_at > p_now;
    if used.files >= p_count_max then
      return 'too_many';
    elsif used.bytes + p_size_bytes > p_size_bytes_max then
      return 'too_much';
    end if;
  end if;
  insert into files (account_id, id, key_id, task_id, filename, purpose, storage_key, kind, content_type, size_bytes,
      width, height, duration_ms, created_at, expires_at)
    values (p_account, p_id, p_key, p_task, p_filename, p_purpose, p_storage_key, p_kind, p_content_type, p_size_bytes,
      p_width, p_height, p_duration_ms, p_now, p_expires_at)
    on conflict (account_id, id) do nothing; -- an earlier call whose answer was lost
  return 'added';
end $$;
