-- Says that a node is alive, which its leases need: all of them, in one row. One that was silent for so long that others
-- believed it dead begins anew: its money may have been given to them. Locks the leases in the order of move_money.
create or replace function keep_leases(p_node text) returns void language plpgsql as $$
begin
  if exists (select from lessees n where n.node_id = p_node and n.seen_at <= now() - interval '8 s') then
    perform from leases where node_id = p_node and account_id <> '' order by account_id, resource for update;
    delete from leases where node_id = p_node and account_id <> '';
  end if;
  insert into lessees as n (node_id, seen_at) values (p_node, now())
    on conflict (node_id) do update set seen_at = excluded.seen_at, has_stopped = false where n.seen_at < excluded.seen_at;
end $$;
