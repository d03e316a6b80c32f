-- Returns the tags in the metadata of a call or a task, each once: its member "tags" is a text with commas. Locks nothing.
create or replace function tags_in(p_metadata jsonb) returns table (tag text) immutable language sql as $$
  select distinct trim(part) from string_to_table(p_metadata ->> 'tags', ',') part where trim(part) <> ''
$$;
