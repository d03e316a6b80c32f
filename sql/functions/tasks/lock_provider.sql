-- Locks a provider until the transaction ends. Whoever begins a run there by its limits, or reserves one, holds the lock.
-- Returns nothing.
create or replace function lock_provider(p_provider text) returns void language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('provider ' || p_provider, 0));
end $$;
