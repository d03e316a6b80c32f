-- Chat calls by what their callers said of them, and by how they failed. Calls that were answered and have no labels are
-- not in the index, and cost nothing.
--
-- Each word begins with a tag of its account, as in 0224. Beside the words of the end user, the metadata and the error
-- stand hashes of whole labels, behind "=": an end user, a tag, a pair, a type of error and a status as they are. Words
-- above 2,000 bytes are left out. It calls no function of ours: PostgreSQL makes an index without a search path.
-- module: chat
create or replace function call_words(p_account text, p_user text, p_metadata jsonb, p_error text, p_status integer)
returns tsvector immutable parallel safe cost 2000 language sql as $$
  with pairs as materialized (
    select key, value from jsonb_each_text(case when jsonb_typeof(p_metadata) = 'object' then p_metadata end))
  select array_to_tsvector(coalesce(array_agg(left(md5(p_account), 8) || part), '{}'))
    from (
      select word from unnest(tsvector_to_array(to_tsvector('pg_catalog.simple', regexp_replace(
        concat_ws(' ', p_user, p_error, case when p_status >= 400 then p_status::text end,
          (select string_agg(key || ' ' || value, ' ') from pairs)),
        '[!-/:-@[-`{-~]', ' ', 'g')))) word
       where octet_length(word) <= 2000
      union all
      select '=' || left(md5(label), 16) from (
        select 'user ' || p_user
        union all select 'error ' || p_error
        union all select 'status ' || p_status::text where p_status >= 400
        union all select 'pair ' || key || ' ' || value from pairs
        union all select 'tag ' || trim(tag) from pairs, string_to_table(value, ',') tag where key = 'tags') l (label)
       where label is not null) p (part)
$$;

create index if not exists chat_calls_of_words on chat_calls
  using gin (call_words(account_id, end_user, metadata, error_type, status)) with (fastupdate = off)
  where end_user is not null or metadata is not null or status >= 400;
