-- Adds items to the end of a conversation. Locks its row. A turn adds its own and ends with that, however many there are;
-- whoever has none (p_turn null) adds within the bounds, and not while somebody else's turn is in progress. Returns
-- appended, or why nothing was: absent, locked (a turn is in progress), lost (the turn is another's by now), full, taken
-- (an item has this id).
create or replace function append_items(
  p_account_id text, p_id text, p_turn text, p_now timestamptz, p_expires_at timestamptz, p_items_max integer, p_bytes_max bigint,
  p_ids text[], p_key_ids text[], p_contents bytea[], p_json_bytes integer[]
) returns text language plpgsql as $$
declare
  v_row conversations;
  v_count integer := cardinality(p_ids);
  v_json_bytes bigint := (select coalesce(sum(b), 0) from unnest(p_json_bytes) b);
begin
  select * into v_row from conversations where account_id = p_account_id and id = p_id for update;
  if not found or (p_turn is null and v_row.expires_at <= p_now) then
    return 'absent';
  elsif p_turn is null and v_row.turn_until > p_now then
    return 'locked';
  elsif p_turn is not null and v_row.turn is distinct from p_turn then
    return 'lost';
  elsif p_turn is null and (v_row.items + v_count > p_items_max or v_row.json_bytes + v_json_bytes > p_bytes_max) then
    return 'full';
  elsif exists (select from conversation_items
                 where account_id = p_account_id and conversation_id = p_id and id = any(p_ids)) then
    return 'taken';
  end if;
  insert into conversation_items (account_id, conversation_id, place, id, key_id, content, json_bytes)
  select p_account_id, p_id, v_row.next_place + n - 1, i, k, c, b
    from unnest(p_ids, p_key_ids, p_contents, p_json_bytes) with ordinality as new (i, k, c, b, n);
  update conversations
     set items = items + v_count,
         size_bytes = size_bytes + (select coalesce(sum(octet_length(c)), 0) from unnest(p_contents) c),
         json_bytes = json_bytes + v_json_bytes,
         next_place = next_place + v_count,
         turn = null, turn_until = null, used_at = p_now, expires_at = p_expires_at
   where account_id = p_account_id and id = p_id;
  return 'appended';
end $$;
