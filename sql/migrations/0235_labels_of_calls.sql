-- Names that callers put on chat calls: the end user, and pairs of texts. Null where a call has none, and in records of
-- the versions before.
alter table chat_calls add column end_user text, add column metadata jsonb;
