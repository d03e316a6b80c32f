-- Chat calls that failed by the words of their error's message, beside the words that 0267 has of them. A search for words
-- finds these in this index, and all other calls in that one. Calls that were answered are not in it, and cost nothing.
--
-- Each word begins with a tag of its account, as in 0224. Of a message the first 300 characters count: each word costs the
-- end of a call. It calls no function of ours: PostgreSQL makes an index without a search path.
-- module: chat
create or replace function message_words(p_account text, p_message text) returns tsvector
immutable parallel safe cost 1000 language sql as $$
  select array_to_tsvector(coalesce(array_agg(left(md5(p_account), 8) || word), '{}'))
    from unnest(tsvector_to_array(to_tsvector('pg_catalog.simple',
      regexp_replace(left(p_message, 300), '[!-/:-@[-`{-~]', ' ', 'g')))) word
   where octet_length(word) <= 2000
$$;

create index if not exists chat_calls_failed_of_words on chat_calls
  using gin ((call_words(account_id, end_user, metadata, error_type, status) || message_words(account_id, error_message)))
  with (fastupdate = off) where error_message is not null;
