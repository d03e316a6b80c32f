-- Ends a line of a batch that p_claim works on, and counts it: p_line has account_id, batch_id, number, and the columns that
-- say how it ended. `state` is answered if its charge is still to be booked, else done. Only a line that is sent under this
-- claim ends, once. Locks the batch. Returns whether it ended.
create or replace function end_line(p_line jsonb, p_claim text, p_result bytea) returns boolean
  language plpgsql as $$
declare
  l batch_lines := jsonb_populate_record(null::batch_lines, p_line);
  is_good boolean := coalesce(l.status_code between 200 and 299, false);
begin
  perform from batches where account_id = l.account_id and id = l.batch_id and claim = p_claim for update;
  if not found then
    return false;
  end if;
  update batch_lines set state = l.state, status_code = l.status_code, error_code = l.error_code, charge = l.charge,
         result = p_result
    where account_id = l.account_id and batch_id = l.batch_id and number = l.number and state = 'sent' and claim = p_claim;
  if not found then
    return false;
  end if;
  update batches set completed = completed + is_good::int, failed = failed + (not is_good)::int
    where account_id = l.account_id and id = l.batch_id;
  return true;
end $$;
