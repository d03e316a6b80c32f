-- Tasks by a tag of their metadata: a hash of each, as our own JSON texts have it, and of the account. Tasks without tags
-- are not in the index.
-- module: tasks
create or replace function task_tags(p_account text, p_metadata text) returns bigint[]
immutable parallel safe cost 2000 language sql as $$
  select array_agg(hashtextextended(p_account || ' ' || trim(tag), 0))
    from string_to_table((regexp_match(p_metadata, '[{,]"tags":"((?:[^"\\]|\\.)*)"'))[1], ',') tag
$$;
create index if not exists tasks_of_tags on tasks using gin (task_tags(account_id, metadata)) with (fastupdate = off)
  where strpos(metadata, '"tags":"') > 0;

-- Tasks that failed by the words of their error, beside those of their input and metadata.
create index if not exists tasks_failed_of_words on tasks
  using gin (task_words(account_id, input, error_type || ' ' || coalesce(error_message, '') || ' ' || metadata))
  with (fastupdate = off) where error_type is not null;
