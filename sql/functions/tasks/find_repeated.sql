-- Finds the task that a request with this Idempotency-Key has made within 24 hours: p_once has the key under which it is
-- stored, and `shared_key` and `account_key`, under which a key that shares the budget may have stored it. Locks nothing.
-- Returns no row if there is none.
--
-- A limited key stores under `shared_key`, every other one under `account_key`. When a key is rotated, either may come
-- after the other.
create or replace function find_repeated(p_account text, p_key text, p_once jsonb, p_now timestamptz)
  returns setof idempotency_keys language plpgsql stable as $$
begin
  return query
    select i.* from idempotency_keys i
     where i.account_id = p_account and i.created_at > p_now - interval '24 hours'
       and i.key in (p_once ->> 'key', p_once ->> 'shared_key', p_once ->> 'account_key')
       and (i.key = p_once ->> 'key' or exists (
         select from tasks t where t.account_id = i.account_id and t.id = i.task_id and is_shared_budget(p_key, t.key_id)))
     order by i.key <> p_once ->> 'key' limit 1;
end $$;
