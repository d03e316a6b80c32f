-- Tasks by pairs of their metadata, which only callers know: rare ones are found by this index. Tasks without metadata
-- are not in it. A hash of each `"key":"value"`, as our own JSON texts have it, and of the account.
-- room: tasks
create or replace function task_pairs(p_account text, p_metadata text) returns bigint[] immutable parallel safe language sql as $$
  select array_agg(hashtextextended(p_account || ' ' || pair[1], 0))
    from regexp_matches(p_metadata, '"(?:[^"\\]|\\.)*":"(?:[^"\\]|\\.)*"', 'g') pair
$$;
create index if not exists tasks_of_pairs on tasks using gin (task_pairs(account_id, metadata)) with (fastupdate = off)
  where metadata <> '{}';
