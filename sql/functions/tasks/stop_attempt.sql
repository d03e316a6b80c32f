-- Notes that a run which its task had left behind was stopped upstream, unbilled. Locks the attempt, then the account's
-- balance. Returns nothing.
create or replace function stop_attempt(p_now timestamptz, p_account text, p_id text, p_number int) returns void language plpgsql as $$
declare
  stopped record;
begin
  update attempts set state = 'canceled'
    where account_id = p_account and task_id = p_id and number = p_number and state = 'abandoned'
    returning provider, route into stopped;
  if found and exists (select from ledger_entries e where e.ref = p_id and e.event = 'close'
      and e.account_id is not distinct from p_account and e.upstream_unknown = 1) then
    perform note_upstream(p_now, jsonb_build_object('account_id', p_account, 'ref', p_id, 'number', p_number,
        'provider', stopped.provider, 'route', stopped.route, 'model', t.model, 'kind', t.kind), 'stopped')
      from tasks t where t.account_id = p_account and t.id = p_id;
  end if;
end $$;
