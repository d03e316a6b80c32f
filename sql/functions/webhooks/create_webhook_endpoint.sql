-- Registers an endpoint, unless its account has p_max already: p_endpoint has the columns of the table. Locks the
-- endpoints of the account against others that are registered at once. Returns its row; null if there are too many.
create or replace function create_webhook_endpoint(p_endpoint jsonb, p_max int) returns webhook_endpoints language plpgsql as $$
declare
  w webhook_endpoints := jsonb_populate_record(null::webhook_endpoints, p_endpoint);
begin
  perform pg_advisory_xact_lock(hashtextextended('webhook endpoints ' || w.account_id, 0));
  if (select count(*) from webhook_endpoints x where x.account_id = w.account_id) >= p_max then
    return null;
  end if;
  insert into webhook_endpoints (account_id, id, url, lane, host, description, events, models, key_ids, project_ids, pairs, secret,
      enabled, disabled_reason, disabled_at, created_at, changed_at)
    values (w.account_id, w.id, w.url, w.lane, w.host, w.description, w.events, w.models, w.key_ids, w.project_ids, w.pairs, w.secret,
      w.enabled, w.disabled_reason, w.disabled_at, w.created_at, w.changed_at)
    returning * into w;
  return w;
end $$;
