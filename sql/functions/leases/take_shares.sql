-- Leases shares of limits that no table counts: requests of a key in any minute, or its calls at once. A node may use as
-- much as its share, and all shares together are never more than the limit. p_requests is an array of
-- {resource, limit, in_use, least, need, gives_back, frees_in_ms, lost_ms}: the node uses in_use now, may go up to least
-- in any case, since it has that share, and wants need more, and some to spare unless it gives_back; the first of what it
-- uses is free again in frees_in_ms. The share of a node that died counts as used for lost_ms.
--
-- Locks the resources in the order of their names. Returns arrays, request i's answer is at i: outcome granted; leased
-- (others have what it needs, and are asked for what they do not use: try again in a moment); full. amount is the share;
-- others, others_in_use and others_free_in_ms are the shares of all others, what they said that they use of them, and when
-- the first of that is free again.
create or replace function take_shares(
  p_clock timestamptz, p_node text, p_requests jsonb,
  out outcome text[], out amount bigint[], out others bigint[], out others_in_use bigint[],
  out others_free_in_ms float8[]
) language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
declare
  v_count constant int := jsonb_array_length(p_requests);
  r record;
  o record; -- the leases of others
  v_free bigint;
  v_amount bigint;
begin
  outcome := array_fill(null::text, array[v_count]);
  amount := array_fill(null::bigint, array[v_count]);
  others := array_fill(null::bigint, array[v_count]);
  others_in_use := array_fill(null::bigint, array[v_count]);
  others_free_in_ms := array_fill(null::float8, array[v_count]);
  for r in
    select * from rows from (jsonb_to_recordset(p_requests) as (resource text, "limit" bigint, in_use bigint, least bigint,
        need bigint, gives_back boolean, frees_in_ms float8, lost_ms float8)) with ordinality u (resource, "limit", in_use,
        least, need, gives_back, frees_in_ms, lost_ms, i)
      order by resource
  loop
    perform pg_advisory_xact_lock(7633530, hashtext(r.resource));
    -- In a statement behind the lock, so that it reads what the owner before has written.
    -- What others used counts for as long as what a dead node used: it is a part of their shares.
    select coalesce(sum(l.amount), 0) as amount,
           coalesce(sum(l.in_use) filter (where l.heard_at > p_clock - r.lost_ms * interval '1 ms'), 0) as in_use,
           min(l.frees_at) as frees_at,
           max(l.ends_at) filter (where l.node_id = '') - interval '2 s' as recalled_at,
           min(l.heard_at) filter (where l.node_id <> '') as heard_at
      into o from (select l.*, l.ends_at - interval '5 min' as heard_at, n.seen_at
        from leases l left join lessees n on n.node_id = l.node_id
       where l.account_id = '' and l.resource = r.resource and l.node_id <> p_node) l
     where case when l.node_id = '' then l.ends_at > p_clock - interval '2 s'
       else l.ends_at > p_clock - interval '2 s' - r.lost_ms * interval '1 ms'
        and l.seen_at > p_clock - interval '8 s' - r.lost_ms * interval '1 ms' end;
    v_free := r."limit" - o.amount;
    v_amount := greatest(r.least, r.in_use, least(r.in_use + r.need, v_free));
    if v_amount >= r.in_use + r.need then
      outcome[r.i] := 'granted';
      if not r.gives_back and coalesce(o.recalled_at < p_clock - interval '2 s', true) then
        v_amount := greatest(v_amount, r.in_use + r.need + (v_free - r.in_use - r.need) / 2);
      end if;
    elsif o.amount = 0 then
      outcome[r.i] := 'full';
    elsif coalesce(o.recalled_at < p_clock - interval '250 ms', true) then
      outcome[r.i] := 'leased';
      perform recall_leases('', r.resource, p_clock);
    elsif o.heard_at < o.recalled_at and o.recalled_at > p_clock - interval '200 ms' then
      outcome[r.i] := 'leased'; -- who is alive answers within that
    else
      outcome[r.i] := 'full';
    end if;
    amount[r.i] := v_amount;
    others[r.i] := o.amount;
    others_in_use[r.i] := o.in_use;
    others_free_in_ms[r.i] := greatest(extract(epoch from o.frees_at - p_clock) * 1000, 0);
    insert into leases (account_id, resource, node_id, amount, in_use, ends_at, frees_at)
      values ('', r.resource, p_node, v_amount, r.in_use, p_clock + interval '5 min',
        p_clock + r.frees_in_ms * interval '1 ms')
      on conflict (account_id, resource, node_id) do update
        set amount = excluded.amount, in_use = excluded.in_use, ends_at = excluded.ends_at, frees_at = excluded.frees_at;
  end loop;
end $$;
