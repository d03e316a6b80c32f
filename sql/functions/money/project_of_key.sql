-- Returns the id of the project that a key is in now. Locks nothing.
create or replace function project_of_key(p_key text) returns text stable language sql as $$
  select coalesce(project_id, 'default') from budgets where key_id = p_key
$$;
