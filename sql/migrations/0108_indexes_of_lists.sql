-- Lists by what few rows have: each page is read from an index in its order, however old the account is. They lead with
-- the account. Columns that change while a task runs are in none of them, so that its updates stay on their page; rows
-- that nearly all are alike, holds and charges of the ledger and calls that ended well, cost no more than a look at the
-- predicate. Calls of a model or a key have none: two indexes made a record of 468 bytes one of 831.
--
-- An index over a large table takes a second per million rows, in which nobody writes to it. Whoever has many makes them
-- before this version starts, by the same statements with "concurrently": docs/operate.md.
create index if not exists ledger_entries_few on ledger_entries (account_id, type, number) where type not in ('hold', 'settle');
create index if not exists tasks_unfinished_of_account on tasks (account_id, id) where completed_at is null;
create index if not exists tasks_failed on tasks (account_id, id) where error_type is not null;
create index if not exists tasks_of_model on tasks (account_id, model, id) where completed_at is not null;
create index if not exists tasks_of_key on tasks (account_id, key_id, id) where completed_at is not null;
create index if not exists tasks_videos on tasks (account_id, id) where kind = 'video';
create index if not exists deliveries_dropped on deliveries (account_id, id) where state = 'dropped';
create index if not exists deliveries_dropped_of_all on deliveries (id) where state = 'dropped';
create index if not exists chat_calls_failed on chat_calls (account_id, id) where status >= 400;
