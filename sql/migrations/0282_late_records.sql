-- When the record of a chat call was written, where that was long after its call began: the call was a long one, or its
-- record came out of a journal. Checks of the books find these by it, and all others by the beginning of their call. Null
-- in all others, which are not in the index and cost nothing.
--
-- The index is empty at first, but made by reading the whole table: a second per million rows, in which nobody writes to
-- it, nor reads it if the column is new. Whoever has many makes column and index before this version starts:
-- docs/operate.md. To add a column takes its lock even where it is there.
do $$
begin
  if not exists (select from pg_attribute
      where attrelid = 'chat_calls'::regclass and attname = 'recorded_at' and not attisdropped) then
    alter table chat_calls add column recorded_at timestamptz;
  end if;
end $$;
create index if not exists chat_calls_recorded_late on chat_calls (recorded_at) where recorded_at is not null;
