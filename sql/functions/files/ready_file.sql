-- Makes a file usable whose bytes are stored, and completes the session in which it arrived, both or neither: of two calls
-- that complete one session, one succeeds. p_name and p_session may be null. Locks the session, then the account's files,
-- whose names are unique. Returns ready; removed if the row is gone or about to go, ended if the session is no longer
-- pending, or name_taken.
create or replace function ready_file(
  p_account text, p_id text, p_sha256 text, p_name text, p_session text, p_now timestamptz
) returns text language plpgsql as $$
begin
  if p_session is not null then
    perform from upload_sessions
      where account_id = p_account and id = p_session and state = 'pending' and expires_at > p_now for update;
    if not found then
      return 'ended';
    end if;
  end if;
  if p_name is not null then
    perform pg_advisory_xact_lock(hashtextextended('files ' || p_account, 0));
    update files set name = null where account_id = p_account and name = p_name and expires_at <= p_now;
    if exists (select from files where account_id = p_account and name = p_name) then
      return 'name_taken';
    end if;
  end if;
  update files set ready = true, sha256 = p_sha256, name = p_name
    where account_id = p_account and id = p_id and expires_at > created_at;
  if not found then
    return 'removed';
  end if;
  update upload_sessions set state = 'completed', file_id = p_id where account_id = p_account and id = p_session;
  return 'ready';
end $$;
