-- Chat calls of all accounts that failed in a time, for the list of operators. The status and the type of the error are in
-- the index, so only calls that fit are read. Calls that were answered are not in it, and cost nothing.
--
-- An index over a large table takes a second per million rows, in which nobody writes to it. Whoever has many makes it
-- before this version starts, by the same statement with "concurrently": docs/operate.md.
create index if not exists chat_calls_failed_by_time on chat_calls (created_at, status, error_type) where status >= 400;
