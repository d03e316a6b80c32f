-- Tasks by the words of their input and metadata: for the search of the dashboard. Words are those of the text search
-- configuration "simple", which every PostgreSQL has, so nothing depends on a language or an extension.
--
-- Each word of a task begins with a tag of its account, so that a word that is common elsewhere costs an account nothing.
-- Only tasks that have ended are in the index: they enter it when they end, not while their caller waits. Those that have
-- not are few, and are read themselves.

-- Words of a JSON text: without the names of its members, its escapes and its punctuation. Of the input the first 4,000
-- characters, and of its prompt if it lies behind them; of the metadata the names, too. Without words above 2,000 bytes:
-- with its tag, a word has 2,046 at most, and array_to_tsvector cuts a longer one without an error. It calls no function
-- of ours: PostgreSQL makes an index without a search path.
-- room: tasks
create or replace function task_words(p_account text, p_input text, p_metadata text) returns tsvector
immutable parallel safe cost 2000 language sql as $$
  select array_to_tsvector(coalesce(array_agg(left(md5(p_account), 8) || word), '{}'))
    from unnest(tsvector_to_array(to_tsvector('pg_catalog.simple', regexp_replace(
      case when length(p_input) <= 4000 then p_input
        else left(p_input, 4000) || ' ' || substr(p_input, strpos(p_input, '"prompt":"'), 4000) end
      || ' ' || replace(left(p_metadata, 4000), '":', '" '),
      '"[^"\\]*":|\\(?:u[0-9a-fA-F]{4}|.)|[!-/:-@[-`{-~]', ' ', 'g')))) word
   where octet_length(word) <= 2000
$$;

-- All words that somebody looks for; each may be the beginning of a word. Null if there is none in the text.
-- room: tasks
create or replace function task_query(p_account text, p_text text) returns tsquery immutable parallel safe language sql as $$
  select string_agg('''' || left(md5(p_account), 8) || word || ''':*', ' & ')::tsquery
    from unnest(tsvector_to_array(to_tsvector('pg_catalog.simple',
      regexp_replace(left(p_text, 200), '[!-/:-@[-`{-~]', ' ', 'g')))) word
$$;

create index if not exists tasks_of_words on tasks using gin (task_words(account_id, input, metadata))
  with (fastupdate = off) where completed_at is not null;
