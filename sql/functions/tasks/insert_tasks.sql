-- Creates many tasks, none with an Idempotency-Key: each gets the answer that insert_task would have given it, one
-- after the other in their order; but an error (an account that is not there, a value that the table refuses) fails
-- all. Locks the balances in the order of the accounts' ids. Returns arrays, with outcome created, paused,
-- insufficient, over_limit, or exists: an earlier call has created it, and its answer was lost.
--
-- p_tasks is an array of tasks with the columns of the table. Members with an Idempotency-Key are for insert_task: the
-- lock on such a key is its transaction's, so two members would both have it. No two members may have the same id. The
-- failures are looked up once per account, before the locks, as in insert_task. p_now is the time of the holds;
-- created_at is each member's own.
create or replace function insert_tasks(
  p_now timestamptz, p_tasks jsonb, p_failures_max int,
  out outcome text[], out retry_after int[], out available bigint[], out remaining bigint[]
) language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
declare
  t constant tasks[] := array(select x from jsonb_populate_recordset(null::tasks, p_tasks) x);
  v_count constant int := cardinality(t);
  m record;
  h_at int[]; -- those that are not paused: their places, and what move_money is asked
  h_members jsonb;
begin
  outcome := array_fill(null::text, array[v_count]);
  retry_after := array_fill(null::int, array[v_count]);
  available := array_fill(null::bigint, array[v_count]);
  remaining := array_fill(null::bigint, array[v_count]);
  for m in
    select u.ordinality as i, p.until from (
        select a.account_id, paused_until(p_now, a.account_id, p_failures_max) as until
          from (select distinct account_id from unnest(t)) a) p
      join unnest(t) with ordinality u on u.account_id = p.account_id
      where p.until is not null
  loop
    outcome[m.i] := 'paused';
    retry_after[m.i] := greatest(1, ceil(extract(epoch from m.until - p_now)));
  end loop;

  select array_agg(u.ordinality order by u.ordinality),
         jsonb_agg(jsonb_build_object('verb', 'hold', 'account_id', u.account_id, 'key_id', u.key_id, 'ref', u.id,
           'amount', u.estimate, 'model', u.model, 'kind', u.kind) order by u.ordinality)
    into h_at, h_members
    from unnest(t) with ordinality u where outcome[u.ordinality] is null;
  if h_at is null then
    return;
  end if;
  for m in
    select n.* from move_money(p_now, null, h_members, null) h
      cross join lateral unnest(h_at, h.outcome, h.available, h.remaining) n (i, outcome, available, remaining)
  loop
    outcome[m.i] := case m.outcome when 'held' then 'created' else m.outcome end;
    available[m.i] := m.available;
    remaining[m.i] := m.remaining;
  end loop;

  insert into tasks (account_id, id, key_id, model, kind, input, metadata, webhook_url, traceparent, currency, pricing,
      held_units, estimate, created_at, deadline_at)
    select n.account_id, n.id, n.key_id, n.model, n.kind, n.input, n.metadata, n.webhook_url, n.traceparent,
        n.currency, n.pricing, n.held_units, n.estimate, n.created_at, n.deadline_at
      from unnest(t) with ordinality n where outcome[n.ordinality] = 'created';
  perform engine_send_many('task.start',
      array_agg(jsonb_build_object('account_id', n.account_id, 'task_id', n.id)), array_agg(n.id))
    from unnest(t) with ordinality n where outcome[n.ordinality] = 'created';
end $$;
