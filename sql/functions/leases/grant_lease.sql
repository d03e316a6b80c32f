-- Leases an amount to a node for 3 s, in place of what it had; p_in_use is what it has reserved of it already. With 0 it
-- has nothing. Whoever calls it has the lock of the resource.
create or replace function grant_lease(
  p_account text, p_resource text, p_node text, p_amount bigint, p_in_use bigint, p_clock timestamptz
) returns void language plpgsql set enable_seqscan = off as $$
begin
  if p_amount = 0 then
    delete from leases where account_id = p_account and resource = p_resource and node_id = p_node;
  else
    insert into leases (account_id, resource, node_id, amount, in_use, ends_at)
      values (p_account, p_resource, p_node, p_amount, p_in_use, p_clock + interval '3 s')
      on conflict (account_id, resource, node_id) do update
        set amount = excluded.amount, in_use = excluded.in_use, ends_at = excluded.ends_at;
  end if;
end $$;
