-- Returns the keys of all jobs that are waiting, deferred or running. Locks nothing. A sweep joins its unfinished rows
-- against this: one pass over the job table, which holds live jobs only, and no index to keep up at every send.
create or replace function engine_live_keys() returns table (key text) language plpgsql stable rows 10000 as $$
begin
  return query
    select distinct j.singleton_key from pgboss.job j
    where j.singleton_key is not null and j.state < 'completed';
end $$;
