-- Creates a response in the background: its hold, its row, its contents and its job, or nothing. p_row has the columns of
-- background_responses, p_hold is that of hold_money. An advisory lock makes responses of one account count one another; then
-- locks the account's balance. Returns outcome: created; crowded (the account has p_unfinished_max others that are not
-- done); or as of the hold: exists (created by this call before, whose answer was lost), insufficient, over_limit, leased.
create or replace function insert_background_response(
  p_row jsonb, p_hold jsonb, p_unfinished_max integer, p_contents jsonb, p_bytes bytea[],
  out outcome text, out available bigint, out remaining bigint
) language plpgsql as $$
declare
  r background_responses := jsonb_populate_record(null::background_responses, p_row);
begin
  perform pg_advisory_xact_lock(hashtextextended('background ' || r.account_id, 0));
  if (select count(*) from background_responses b
       where b.account_id = r.account_id and b.id <> r.id and b.done_at is null) >= p_unfinished_max then
    outcome := 'crowded';
    return;
  end if;
  select h.outcome, h.available, h.remaining into outcome, available, remaining
    from hold_money(r.created_at, null, p_hold, null) h;
  if outcome <> 'held' then
    return;
  end if;
  r.status := 'queued';
  r.cancel_requested := false;
  insert into background_responses select r.*;
  perform add_background_contents(r.account_id, r.id, p_contents, p_bytes);
  perform engine_send('response.run', jsonb_build_object('account_id', r.account_id, 'task_id', r.id), null, r.id);
  outcome := 'created';
end $$;
