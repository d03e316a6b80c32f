-- Writes a file down before its bytes are stored, unless its account has too many of them; p_file has the columns of
-- files. An advisory lock makes uploads of one account count one another; files of a task's input are not counted.
-- Returns added, too_many or too_much.
create or replace function insert_file(p_file jsonb, p_count_max int, p_size_bytes_max bigint) returns text
  language plpgsql as $$
declare
  f files := jsonb_populate_record(null::files, p_file);
  used record;
begin
  if f.task_id is null then
    perform pg_advisory_xact_lock(hashtextextended('files ' || f.account_id, 0));
    select count(*) as files, coalesce(sum(size_bytes), 0) as bytes into used from files
      where account_id = f.account_id and task_id is null and expires_at > f.created_at;
    if used.files >= p_count_max then
      return 'too_many';
    elsif used.bytes + f.size_bytes > p_size_bytes_max then
      return 'too_much';
    end if;
  end if;
  f.ready := false;
  insert into files select f.* on conflict (account_id, id) do nothing; -- an earlier call whose answer was lost
  return 'added';
end $$;
