-- Asks all nodes to give back what they do not use of a resource, and leases it to none for 2 s. The message goes out with
-- the commit, at most ten times a second for one resource.
create or replace function recall_leases(p_account text, p_resource text, p_clock timestamptz)
  returns void language plpgsql set enable_seqscan = off as $$
begin
  insert into leases as l (account_id, resource, node_id, amount, ends_at)
    values (p_account, p_resource, '', 0, p_clock + interval '2 s')
    on conflict (account_id, resource, node_id) do update set ends_at = excluded.ends_at
      where l.ends_at < p_clock + interval '1.9 s';
  if found then
    perform pg_notify('leases_recalled', p_account || ' ' || p_resource);
  end if;
end $$;
