-- Hands an open attempt over to another worker: from now on the old claim is refused. Locks the attempt. Returns false
-- if somebody else was first, or the upstream has accepted in between.
create or replace function claim_attempt(p_account text, p_id text, p_number int, p_seen_claim text, p_claim text)
  returns boolean language plpgsql as $$
begin
  update attempts set claim = p_claim
    where account_id = p_account and task_id = p_id and number = p_number
      and claim in (p_seen_claim, p_claim) and state = 'submitting';
  return found;
end $$;
