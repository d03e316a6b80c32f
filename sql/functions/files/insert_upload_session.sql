-- Begins a file that arrives in parts, unless its account has too many files; p_session has the columns of
-- upload_sessions. Locks the account's files. Returns added, too_many, too_much or name_taken.
create or replace function insert_upload_session(p_session jsonb, p_count_max int, p_size_bytes_max bigint) returns text
  language plpgsql as $$
declare
  s upload_sessions := jsonb_populate_record(null::upload_sessions, p_session);
  problem text := files_problem(s.account_id, null, coalesce(s.size_bytes, 0), p_count_max, p_size_bytes_max);
begin
  if problem is not null then
    return problem;
  end if;
  if exists (select from files where account_id = s.account_id and name = s.name and expires_at > s.created_at) then
    return 'name_taken';
  end if;
  s.state := 'pending';
  s.received_bytes := 0;
  s.parts_begun := 0;
  insert into upload_sessions select s.*;
  return 'added';
end $$;
