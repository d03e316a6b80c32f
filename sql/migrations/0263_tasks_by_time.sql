-- Tasks of all accounts in a time, for the list of operators: chat calls have such an index already. It has a column that
-- never changes, so updates of a task stay on their page.
--
-- An index over a large table takes a second per million rows, in which nobody writes to it. Whoever has many makes it
-- before this version starts, by the same statement with "concurrently": docs/operate.md.
create index if not exists tasks_by_time on tasks (created_at);
