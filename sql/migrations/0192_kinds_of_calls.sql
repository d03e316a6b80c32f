-- Holds of two more kinds of calls: rankings and moderation.
-- room: money
create or replace function hold_is_sound(r open_holds) returns boolean immutable language plpgsql as $$
begin
  return r.amount >= 0 and r.exposed >= 0
    and r.kind in ('chat', 'embedding', 'rerank', 'moderation', 'image', 'video', 'audio');
end $$;
