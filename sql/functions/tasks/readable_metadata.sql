-- Returns the metadata of a task, a JSON text; null where PostgreSQL refuses to read it, for it has half a surrogate pair,
-- which stands there as an escape (an odd number of backslashes before "ud"). Locks nothing.
create or replace function readable_metadata(p_metadata text) returns jsonb immutable language sql as $$
  select case when p_metadata !~ '(^|[^\\])(\\\\)*\\ud' then p_metadata::jsonb end
$$;
