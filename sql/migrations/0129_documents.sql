-- Uploads may be documents, too: PDF, text, JSON and JSON lines.
alter table files drop constraint files_kind_check;
alter table files add constraint files_kind_check check (kind in ('image', 'video', 'audio', 'document'));
