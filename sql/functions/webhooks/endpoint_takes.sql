-- Tells whether an endpoint asks for an event, its projects among the filters. Locks nothing.
create or replace function endpoint_takes(w webhook_endpoints, e webhook_events) returns boolean immutable language sql as $$
  select endpoint_wants(w, e.type, e.model, e.key_id, e.metadata)
    and (w.project_ids is null or e.project_id = any(w.project_ids) or split_part(e.type, '.', 1) <> 'task')
$$;
