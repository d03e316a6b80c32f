-- Begins a batch, unless its account has p_count_max that have not ended; p_batch has the columns of batches. An advisory
-- lock makes batches of one account count one another. Returns whether it was added.
create or replace function insert_batch(p_batch jsonb, p_count_max int) returns boolean
  language plpgsql as $$
declare
  b batches := jsonb_populate_record(null::batches, p_batch);
begin
  perform pg_advisory_xact_lock(hashtextextended('batches ' || b.account_id, 0));
  if (select count(*) from batches where account_id = b.account_id and ended_at is null) >= p_count_max then
    return false;
  end if;
  insert into batches (account_id, id, key_id, endpoint, input_file_id, metadata, keep_s, created_at, expires_at)
    values (b.account_id, b.id, b.key_id, b.endpoint, b.input_file_id, b.metadata, b.keep_s, b.created_at, b.expires_at);
  return true;
end $$;
