-- Returns the query of call_words for calls that have all of these words, each as a word or its beginning, and all of
-- these labels, such as "user ada". Without words, of the labels alone; null where the text has no word. Locks nothing.
create or replace function call_query(p_account text, p_words text, p_labels text[]) returns tsquery
immutable parallel safe language sql as $$
  select string_agg('''' || left(md5(p_account), 8) || part, ' & ')::tsquery
    from to_tsvector('pg_catalog.simple',
      regexp_replace(left(coalesce(p_words, ''), 200), '[!-/:-@[-`{-~]', ' ', 'g')) words
   cross join lateral (
      select word || ''':*' from unnest(tsvector_to_array(words)) word
      union all
      select '=' || left(md5(label), 16) || '''' from unnest(p_labels) label) p (part)
   where p_words is null or length(words) > 0
$$;
