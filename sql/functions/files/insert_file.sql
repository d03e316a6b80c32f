-- Writes a file down before its bytes are stored, unless its account has too many of them; p_file has the columns of
-- files, and the session_id of a file that arrived in parts, which counts no longer. An advisory lock makes uploads of one
-- account count one another; files of a task's input are not counted. Returns added, too_many or too_much.
create or replace function insert_file(p_file jsonb, p_count_max int, p_size_bytes_max bigint) returns text
  language plpgsql as $$
declare
  f files := jsonb_populate_record(null::files, p_file);
  problem text;
begin
  if f.task_id is null then
    problem := files_problem(f.account_id, p_file ->> 'session_id', f.size_bytes, p_count_max, p_size_bytes_max);
    if problem is not null then
      return problem;
    end if;
  end if;
  f.ready := false;
  f.name := null; -- it gets its name when it is ready
  -- An earlier call whose answer was lost, or a file that is stored again: it has its time anew, unless it is being removed.
  insert into files select f.* on conflict (account_id, id) do update
    set created_at = excluded.created_at, expires_at = excluded.expires_at
    where not files.ready and files.expires_at > files.created_at;
  return 'added';
end $$;
