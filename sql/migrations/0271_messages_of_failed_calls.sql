-- The message of the error that the caller of a chat call got, for its page; null before.
alter table chat_calls add column error_message text;
