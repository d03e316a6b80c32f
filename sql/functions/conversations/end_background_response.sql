-- Makes the status of a response in the background final, once, with its last contents and what is still to be done.
-- Locks its row. Returns whether it did: not if another claim has it by now, or it has ended already.
create or replace function end_background_response(
  p_account_id text, p_id text, p_claim text, p_status text, p_now timestamptz, p_ended jsonb, p_contents jsonb, p_bytes bytea[]
) returns boolean language plpgsql as $$
begin
  update background_responses
     set status = p_status, completed_at = p_now, ended = p_ended
   where account_id = p_account_id and id = p_id and claim = p_claim and completed_at is null;
  if not found then
    return false;
  end if;
  delete from background_contents where account_id = p_account_id and response_id = p_id and id = 'request';
  perform add_background_contents(p_account_id, p_id, p_contents, p_bytes);
  return true;
end $$;
