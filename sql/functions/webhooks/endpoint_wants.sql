-- Tells whether an endpoint asks for an event of this type: by its name, by all of its kind (task.*), or by *. Filters
-- narrow events of tasks alone: p_model, p_key and p_metadata, the JSON text, are those of the task. The filter of
-- projects is in endpoint_takes. Locks nothing.
create or replace function endpoint_wants(w webhook_endpoints, p_type text, p_model text, p_key text, p_metadata text)
  returns boolean immutable language sql as $$
  select w.events && array['*', split_part(p_type, '.', 1) || '.*', p_type]
    and (split_part(p_type, '.', 1) <> 'task'
      or (w.models is null or p_model = any(w.models))
      and (w.key_ids is null or p_key = any(w.key_ids))
      and (w.pairs is null or not exists (select from unnest(w.pairs) pair
        where strpos(coalesce(p_metadata, '{}'), '{' || pair) = 0 and strpos(coalesce(p_metadata, '{}'), ',' || pair) = 0)))
$$;
