-- Adds a stored part to its session; p_part has the columns of upload_parts. A chunk must begin where the last one ends, so
-- of two that come at once one is added. All parts must fit into p_size_bytes_max and, where they are more than the session
-- announced, into the account's limits. p_expires_at: the session lives at least so long. Locks the session, then the
-- account's files if the announced size is exceeded. Returns the outcome (added, ended, misplaced, too_long, too_much) and
-- how many bytes have arrived.
create or replace function add_upload_part(
  p_part jsonb, p_size_bytes_max bigint, p_account_bytes_max bigint, p_expires_at timestamptz,
  out outcome text, out received_bytes bigint
) language plpgsql as $$
declare
  part upload_parts := jsonb_populate_record(null::upload_parts, p_part);
  s upload_sessions;
  total bigint;
begin
  select * into s from upload_sessions where account_id = part.account_id and id = part.session_id for update;
  received_bytes := coalesce(s.received_bytes, 0);
  if s.id is null or s.state <> 'pending' or s.expires_at <= part.created_at then
    outcome := 'ended';
    return;
  end if;
  if part.start_bytes <> s.received_bytes then
    outcome := 'misplaced';
    return;
  end if;
  total := s.received_bytes + part.size_bytes;
  if total > p_size_bytes_max then
    outcome := 'too_long';
    return;
  end if;
  if total > coalesce(s.size_bytes, 0)
     and files_problem(s.account_id, s.id, total, 2147483647, p_account_bytes_max) is not null then
    outcome := 'too_much';
    return;
  end if;
  insert into upload_parts select part.*;
  update upload_sessions set received_bytes = total, expires_at = greatest(s.expires_at, p_expires_at)
    where account_id = s.account_id and id = s.id;
  received_bytes := total;
  outcome := 'added';
end $$;
