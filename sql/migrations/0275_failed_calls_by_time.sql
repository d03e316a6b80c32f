-- Chat calls of all accounts that failed in a time, for the list of operators: by their status or their type of error.
-- Calls that were answered are not in the index, and cost nothing.
--
-- An index over a large table takes a second per million rows, in which nobody writes to it. Whoever has many makes it
-- before this version starts, by the same statement with "concurrently": docs/operate.md.
create index if not exists chat_calls_failed_by_time on chat_calls (created_at) where status >= 400;
