-- Money is held for embeddings too, and their calls and those of the responses style leave records as chats do.

alter table open_holds drop constraint open_holds_are_sound;

-- room: money
create function hold_is_sound(r open_holds) returns boolean immutable language plpgsql as $$
begin
  return r.amount >= 0 and r.kind in ('chat', 'embedding', 'image', 'video', 'audio')
    and coalesce(r.expires_at > r.created_at, true);
end $$;
alter table open_holds add constraint open_holds_are_sound check (hold_is_sound(open_holds));
drop function is_sound(open_holds);

alter table chat_calls drop constraint chat_calls_style_check;
alter table chat_calls add constraint chat_calls_style_check
  check (style in ('completions', 'messages', 'responses', 'embeddings'));
