-- Adds contents of a response in the background: p_contents is a list of objects with the columns of background_contents
-- but content, which is in p_bytes at the same place. Contents of the same id are replaced.
create or replace function add_background_contents(
  p_account_id text, p_response_id text, p_contents jsonb, p_bytes bytea[]
) returns void language sql as $$
  insert into background_contents (account_id, response_id, id, first_event, last_event, key_id, content, json_bytes)
  select p_account_id, p_response_id, c.id, c.first_event, c.last_event, c.key_id, p_bytes[n], c.json_bytes
    from rows from (jsonb_to_recordset(p_contents) as (id text, first_event integer, last_event integer, key_id text, json_bytes integer))
         with ordinality as c (id, first_event, last_event, key_id, json_bytes, n)
  on conflict (account_id, response_id, id) do update
    set first_event = excluded.first_event, last_event = excluded.last_event, key_id = excluded.key_id,
        content = excluded.content, json_bytes = excluded.json_bytes
$$;
