-- Returns the names of metadata on the account's newest calls and tasks, p_newest of each, once each, by the alphabet; at
-- most 50. Locks nothing.
create or replace function pair_names(p_account text, p_newest integer) returns table (name text)
stable language sql as $$
  select distinct n.name from (
    select jsonb_object_keys(c.metadata) as name from (
      select metadata from chat_calls where account_id = p_account order by id desc limit p_newest) c
    union
    select jsonb_object_keys(t.metadata) from (
      select readable_metadata(metadata) as metadata from tasks where account_id = p_account
       order by id desc limit p_newest) t) n
   where length(n.name) between 1 and 64 and n.name <> 'tags' and strpos(n.name, ',') = 0
   order by n.name limit 50
$$;
