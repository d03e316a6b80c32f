-- Removes an item of a conversation. Locks the conversation's row. Returns removed, or why nothing was: absent (the
-- conversation), locked (a turn is in progress at p_now; null: whatever is in progress), gone (the item).
create or replace function remove_item(p_account_id text, p_conversation_id text, p_id text, p_now timestamptz)
returns text language plpgsql as $$
declare
  v_row conversations;
  v_item conversation_items;
begin
  select * into v_row from conversations where account_id = p_account_id and id = p_conversation_id for update;
  if not found or v_row.expires_at <= p_now then
    return 'absent';
  elsif v_row.turn_until > p_now then
    return 'locked';
  end if;
  delete from conversation_items
   where account_id = p_account_id and conversation_id = p_conversation_id and id = p_id returning * into v_item;
  if not found then
    return 'gone';
  end if;
  update conversations
     set items = items - 1,
         size_bytes = greatest(size_bytes - octet_length(v_item.content), 0),
         json_bytes = greatest(json_bytes - v_item.json_bytes, 0)
   where account_id = p_account_id and id = p_conversation_id;
  return 'removed';
end $$;
