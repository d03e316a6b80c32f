-- Returns the account's charges of a time, with their project and the labels of their calls and tasks: the end user, the
-- pairs of metadata, and with p_by_tag one row per tag of a charge, in place of one. Locks nothing.
--
-- In one statement, so that the planner sees through it.
create or replace function charges_with_labels(p_account text, p_from timestamptz, p_to timestamptz, p_by_tag boolean)
returns table (at timestamptz, model text, key_id text, project_id text, kind text, cost bigint, units jsonb,
               end_user text, metadata jsonb, tag text)
stable language sql as $$
  select e.created_at, e.model, e.key_id, coalesce(e.project_id, 'default'), e.kind, e.revenue + e.loss, e.units,
         coalesce(c.end_user, t.metadata ->> 'user'), coalesce(c.metadata, t.metadata), g.tag
    from ledger_entries e
    left join chat_calls c on c.account_id = p_account and c.id = e.ref
    left join lateral (
      select readable_metadata(metadata) as metadata from tasks
       where account_id = p_account and id = e.ref and metadata <> '{}') t on true
    left join lateral tags_in(coalesce(c.metadata, t.metadata)) g on p_by_tag
   where e.account_id = p_account and e.type = 'settle' and e.created_at >= p_from and e.created_at < p_to
$$;
