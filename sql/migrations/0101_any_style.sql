-- Styles are folders of the code (src/styles), and a new one needs no migration.
alter table chat_calls drop constraint chat_calls_style_check;
alter table chat_calls add constraint chat_calls_style_check check (style ~ '^[a-z][a-z0-9_]{0,31}$');
