-- Does many movements of many callers, as hold_money (verb hold), close_hold (close) and commit_hold (commit) would one
-- after the other in the order of the members, and leases money to p_node (lease); but an error (an account that is not
-- there, an amount below zero) fails all. Locks the balances in the order of the accounts' ids. Returns arrays: member
-- i's answer is at i.
--
-- Members of accounts with hard budgets are what those functions do, one after the other.
--
-- p_members is an array of what those functions take, each with its verb. No two members may have the same account and
-- ref. They are processed account by account with the sums so far, so that a refused one does not count against those
-- after it; then everything is written at once.
--
-- 256 members took 72 µs of the server's time each over 1,000 accounts when the rows were found by joins, and 40 since
-- (bench/results/money.md). Hence: "lateral … offset 0" makes each row an index probe whatever the planner believes of
-- the tables' sizes; rows are written at the ctid at which they were read, which cannot move while the account is
-- locked; arrays have their full length from the start, since one that begins at its second member would be unnested as
-- if that were the first. One look-up says whether any hold was booked before. Each entry is made where its numbers are
-- known, as a row of the table with all columns in their order: eight arrays took 0.9 µs a member to fill, the rows
-- take 0.6; to read 18 arrays side by side in "from" takes 2.7, the rows 0.3. What an account has at the end is what
-- its last entry says.
create or replace function move_money(
  p_now timestamptz, p_clock timestamptz, p_members jsonb, p_node text,
  out outcome text[], out state text[], out charged bigint[], out available bigint[], out remaining bigint[],
  out upstream bigint[]
) language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  v_clock constant timestamptz := coalesce(p_clock, now());
  v_count constant int := jsonb_array_length(p_members);
  no_numbers constant bigint[] := array_fill(null::bigint, array[v_count]);
  no_texts constant text[] := array_fill(null::text, array[v_count]);
  this_month constant date := month_of(p_now);
  -- What is written: the entries, the holds that open, and where those are that close.
  entry ledger_entries[]; n int := 0;
  opened open_holds[];
  closed_tid tid[];
  granted leases[];
  -- The accounts of the members, and the refs of those that hold something.
  v_accounts text[]; v_refs text[];
  -- The accounts as they were locked, and which entry is the last of each.
  a int := 0; a_tid tid[]; a_id text[]; a_currency text[]; a_amount bigint[]; a_held bigint[]; a_entries bigint[];
  a_exposed bigint[]; a_others bigint[]; a_own bigint[]; -- leased to other nodes, and to this one
  a_lost bigint[]; -- reserved by nodes that died
  a_recalled boolean[];
  a_budgets int[]; -- hard ones
  a_last int[] := array_fill(null::int, array[v_count]);
  -- The budgets that something was written for.
  k int := 0; k_tid tid[]; k_id text[]; k_month date[]; k_spent bigint[]; k_held bigint[];
  k_exposed bigint[]; k_own bigint[]; k_others bigint[]; k_lost bigint[]; k_recalled boolean[];
  v_takes boolean; -- some member takes money, which others may have leased
  v_looks boolean; -- at leases
  repeated boolean; -- some member asks for a hold, or commits one, that was booked before
  -- The account and the key of the member at hand.
  m record;
  v_account text;
  v_currency text; v_available bigint; v_held bigint; v_entries bigint; v_exposed bigint; v_others bigint; v_own bigint;
  v_lost bigint; v_key_lost bigint; v_is_recalled boolean; v_key_is_recalled boolean;
  k_first int; k_at int;
  v_month date; v_spent bigint; v_key_held bigint; v_key_exposed bigint; v_key_own bigint; v_key_others bigint;
  v_outcome text; v_amount bigint; v_share bigint; v_key_share bigint; v_remaining bigint; v_charged bigint;
  v_hold bigint; v_free bigint; v_upstream jsonb; v_owed bigint; v_basis text;
  is_new boolean; -- nothing was written for this member before
  is_late boolean; -- its hold is gone, released by somebody who believed its call to be dead
  past ledger_entries; -- how it ended before
  v_budget text; -- the key whose budget is used
  v_answer record; -- of a member of an account with hard budgets
  v_rows int; v_key_rows int;
begin
  outcome := no_texts; state := no_texts; charged := no_numbers; available := no_numbers; remaining := no_numbers;
  upstream := no_numbers;
  select array_agg(u.account_id), array_agg(u.ref) filter (where u.verb <> 'close'), bool_or(u.verb in ('hold', 'lease'))
    into v_accounts, v_refs, v_takes
    from jsonb_to_recordset(p_members) u (verb text, account_id text, ref text);
  select array_agg(tid), array_agg(account_id), array_agg(currency), array_agg(amount), array_agg(held),
         array_agg(entries), array_agg(exposed), array_agg(hard_budgets)
    into a_tid, a_id, a_currency, a_amount, a_held, a_entries, a_exposed, a_budgets
    from (select ctid as tid, * from balances where account_id = any (v_accounts) order by account_id for update) b;
  -- In a statement behind the locks: nobody leases these accounts' money meanwhile. Beside no other node ends need not
  -- look at leases: their own node's take nothing from them, and to look was a quarter of the function's time.
  v_looks := v_takes or has_others(p_node, v_clock);
  if not v_looks then
    a_others := array_fill(0::bigint, array[cardinality(a_id)]);
    a_own := a_others;
    a_lost := a_others;
  else
    select array_agg(l.others order by u.i), array_agg(l.own order by u.i), array_agg(l.lost order by u.i),
           array_agg(l.is_recalled order by u.i)
      into a_others, a_own, a_lost, a_recalled
      from unnest(a_id) with ordinality u (id, i) cross join lateral lease_state(u.id, 'money', p_node, v_clock) l;
  end if;
  repeated := exists (select from ledger_entries e where e.event = 'hold' and e.ref = any (v_refs));
  for m in
    select u.i, u.verb, u.account_id, u.ref, case when u.verb in ('hold', 'lease') then u.amount else u.cost end as amount,
           u.beyond, u.reserved, u.exposed, u.is_leased, u.key_in_use, u.key_least, u.model as call_model,
           u.kind as call_kind, u.expires_in_ms, u.units, u.upstream, u.end_model,
           coalesce(h.key_id, u.key_id) as key_id,
           k.ctid as k_tid, k.key_id as k_key, k.shares, k.limit_month, k.spent, k.held as k_held, k.month as k_month,
           k.exposed as k_exposed, case when h.ref is null then k.project_id else h.project_id end as project_id,
           h.ctid as h_tid, h.amount as hold, h.exposed as hold_exposed, h.model, h.kind
      from rows from (jsonb_to_recordset(p_members) as (verb text, account_id text, key_id text, ref text,
             amount bigint, reserved bigint, exposed bigint, is_leased boolean, key_in_use bigint, key_least bigint,
             cost bigint, beyond_hold boolean, model text, kind text, expires_in_ms float8, units jsonb, upstream jsonb,
             end_model text))
           with ordinality u (verb, account_id, key_id, ref, amount, reserved, exposed, is_leased, key_in_use,
             key_least, cost, beyond, model, kind, expires_in_ms, units, upstream, end_model, i)
      left join lateral (select ctid, * from open_holds h
        where u.verb <> 'hold' and h.account_id = u.account_id and h.ref = u.ref offset 0) h on true
      left join lateral (select ctid, * from budgets k
        where k.key_id = coalesce(h.key_id, u.key_id) and k.account_id = u.account_id offset 0) k on true
      order by u.account_id, u.i
  loop
    if v_account is distinct from m.account_id then
      a := a + 1;
      v_account := case when a_id[a] = m.account_id then m.account_id end; -- null if there is none
      v_currency := a_currency[a];
      v_held := a_held[a];
      v_available := a_amount[a] - v_held;
      v_entries := a_entries[a];
      v_exposed := a_exposed[a];
      v_others := a_others[a];
      v_own := a_own[a];
      v_lost := a_lost[a];
      v_is_recalled := a_recalled[a];
      k_first := k + 1;
    end if;
    if v_account is null or m.k_tid is null and (m.verb <> 'close' or m.h_tid is not null) then
      raise exception 'there is no account % with a key %', m.account_id, m.key_id
        using errcode = 'foreign_key_violation';
    elsif m.amount < 0 or m.exposed < 0 or m.amount is null and m.verb = 'hold'
        or m.amount > 1000000000000000 and m.verb <> 'hold' then
      raise exception 'a % of % is not an amount', m.verb, m.amount using errcode = 'numeric_value_out_of_range';
    elsif m.verb = 'commit' and coalesce(m.reserved, -1) < 0 then
      raise exception 'a hold of % is not an amount', m.reserved using errcode = 'numeric_value_out_of_range';
    end if;
    if a_budgets[a] > 0 and m.verb <> 'lease' then
      if m.verb = 'hold' then
        select h.*, null::text as state, null::bigint as charged, null::bigint as upstream into v_answer
          from hold_money(p_now, v_clock, p_members -> (m.i - 1)::int, p_node) h;
      elsif m.verb = 'close' then
        select h.*, null::bigint as remaining into v_answer from close_hold(p_now, p_members -> (m.i - 1)::int) h;
      else
        select h.* into v_answer from commit_hold(p_now, p_members -> (m.i - 1)::int) h;
      end if;
      outcome[m.i] := v_answer.outcome;
      state[m.i] := v_answer.state;
      charged[m.i] := v_answer.charged;
      available[m.i] := v_answer.available;
      remaining[m.i] := v_answer.remaining;
      upstream[m.i] := v_answer.upstream;
      continue;
    end if;
    is_new := m.h_tid is null;
    if is_new and repeated and m.verb <> 'close' then
      perform from ledger_entries e
        where e.ref = m.ref and e.event = 'hold' and e.account_id is not distinct from m.account_id;
      is_new := not found;
    end if;
    is_late := false;
    if m.h_tid is null and (m.verb = 'close' or m.verb = 'commit' and not is_new) then
      select * into past from ledger_entries e
        where e.ref = m.ref and e.event in ('close', 'late') and e.account_id is not distinct from m.account_id
        order by e.event desc limit 1;
      if past.type = 'release' and m.amount is not null and m.beyond then
        is_late := true;
        m.key_id := past.key_id;
        m.hold := 0;
        m.hold_exposed := 0;
        m.model := past.model;
        m.kind := past.kind;
        m.project_id := past.project_id;
      elsif past.key_id is not null then
        m.key_id := past.key_id;
      end if;
    end if;
    v_budget := coalesce(m.shares, m.key_id);
    if m.shares is not null or m.key_id is not null and m.k_key is distinct from m.key_id then
      select r.ctid, r.key_id, r.limit_month, r.spent, r.held, r.month, r.exposed
        into m.k_tid, v_budget, m.limit_month, m.spent, m.k_held, m.k_month, m.k_exposed
        from budgets s join budgets r on r.key_id = coalesce(s.shares, s.key_id)
        where s.key_id = m.key_id and s.account_id = m.account_id;
    end if;
    k_at := k_first;
    while k_at <= k and k_id[k_at] <> v_budget loop
      k_at := k_at + 1;
    end loop;
    if k_at <= k then
      v_month := k_month[k_at];
      v_spent := k_spent[k_at];
      v_key_held := k_held[k_at];
      v_key_exposed := k_exposed[k_at];
      v_key_own := k_own[k_at];
      v_key_others := k_others[k_at];
      v_key_lost := k_lost[k_at];
      v_key_is_recalled := k_recalled[k_at];
    else
      v_month := m.k_month;
      v_spent := m.spent;
      v_key_held := m.k_held;
      v_key_exposed := m.k_exposed;
      v_key_own := 0;
      v_key_others := 0;
      v_key_lost := 0;
      if v_looks and m.limit_month is not null then
        select own, others, lost, is_recalled into v_key_own, v_key_others, v_key_lost, v_key_is_recalled
          from lease_state(m.account_id, 'limit ' || v_budget, p_node, v_clock);
      end if;
      if v_month < this_month then
        v_month := this_month;
        v_spent := 0;
      end if;
    end if;

    v_remaining := m.limit_month - v_spent - v_key_held - v_key_exposed - v_key_lost;
    if m.verb = 'lease' then
      outcome[m.i] := 'granted';
      -- Of an account with a hard budget each hold is asked for here: nothing is leased.
      v_own := lease_amount(v_available - v_exposed - v_lost - v_others, m.amount, m.reserved,
        v_is_recalled or a_budgets[a] > 0);
      available[m.i] := v_own;
      granted := granted || row(m.account_id, 'money', p_node, v_own, m.amount, v_clock + interval '5 min', null)::leases;
      if m.limit_month is not null then
        -- What a key may spend ends with the month: a lease of it ends before.
        v_key_own := lease_amount(
          case when month_of(p_now + interval '5 min 8 s') = v_month then v_remaining - v_key_others else 0 end,
          m.key_in_use, m.key_least, v_key_is_recalled or a_budgets[a] > 0);
        remaining[m.i] := v_key_own;
        granted := granted || row(m.account_id, 'limit ' || v_budget, p_node, v_key_own, m.key_in_use,
          v_clock + interval '5 min', null)::leases;
        if k_at <= k then
          k_own[k_at] := v_key_own;
        end if;
      end if;
      continue;
    elsif m.verb = 'hold' then
      m.exposed := coalesce(m.exposed, 0);
      v_amount := m.amount + m.exposed;
      -- A hold that was answered out of this node's leases may use them; any other leaves them, too.
      v_share := lease_share(v_available - v_exposed - v_lost,
        case when m.is_leased then v_own else 0 end, v_others + case when m.is_leased then 0 else v_own end);
      v_key_share := lease_share(v_remaining,
        case when m.is_leased then v_key_own else 0 end, v_key_others + case when m.is_leased then 0 else v_key_own end);
      v_outcome := case
        when not is_new then 'exists'
        when v_available - v_exposed - v_lost < v_amount then 'insufficient'
        when v_remaining < v_amount then 'over_limit'
        when v_share < v_amount or v_key_share < v_amount then 'leased'
        else 'held' end;
      outcome[m.i] := v_outcome;
      if v_outcome <> 'held' then
        if v_outcome = 'leased' then
          perform recall_leases(m.account_id,
            case when v_share < v_amount then 'money' else 'limit ' || v_budget end, v_clock);
          v_is_recalled := v_is_recalled or v_share < v_amount;
        end if;
        available[m.i] := v_available - v_exposed - v_lost;
        remaining[m.i] := v_remaining;
        continue;
      end if;
      remaining[m.i] := v_remaining - v_amount;
      v_exposed := v_exposed + m.exposed;
      v_key_exposed := v_key_exposed + m.exposed;
      v_available := v_available - m.amount;
      v_held := v_held + m.amount;
      v_entries := v_entries + 1;
      v_key_held := v_key_held + m.amount;
      n := n + 1;
      entry := entry || row(m.account_id, v_entries, 'hold', m.ref, 'hold', v_currency, -m.amount, m.amount, 0, 0, 0, 0,
        v_available, v_held, m.key_id, m.call_model, m.call_kind, null, null, v_month, p_now,
        null, null, 0, 0, null, null, null, 0, m.project_id)::ledger_entries;
      opened := opened
        || row(m.account_id, m.ref, m.key_id, m.amount, m.call_model, m.call_kind, p_now,
          p_clock + m.expires_in_ms * interval '1 ms', p_node, m.exposed, m.project_id, null)::open_holds;
    elsif m.h_tid is null and not is_late and not (m.verb = 'commit' and is_new) then
      outcome[m.i] := 'closed';
      available[m.i] := v_available - v_exposed - v_lost;
      remaining[m.i] := v_remaining;
      state[m.i] := case past.type when 'settle' then 'settled' when 'release' then 'released' end;
      charged[m.i] := past.revenue + past.loss;
      upstream[m.i] := case when past.upstream_base is not null then past.upstream_cost end;
      continue;
    else
      if is_late then
        v_hold := 0;
        v_free := least(v_available - v_exposed - v_lost - v_others, v_remaining - v_key_others);
      elsif m.h_tid is null then -- its hold was answered out of memory, and is booked now
        v_free := greatest(least(v_available - v_exposed - v_lost - v_others, v_remaining - v_key_others),
          least(m.reserved + coalesce(m.exposed, 0), lease_share(v_available - v_exposed - v_lost, v_own, v_others),
            lease_share(v_remaining, v_key_own, v_key_others)));
        v_hold := greatest(least(m.reserved, v_free), 0);
        v_free := v_free - v_hold;
        v_available := v_available - v_hold;
        v_entries := v_entries + 1;
        n := n + 1;
        entry := entry || row(m.account_id, v_entries, 'hold', m.ref, 'hold', v_currency, -v_hold, v_hold, 0, 0, 0, 0,
          v_available, v_held + v_hold, m.key_id, m.call_model, m.call_kind, null, null, v_month, p_now,
          null, null, 0, 0, null, null, null, 0, m.project_id)::ledger_entries;
      else
        v_hold := m.hold;
        v_exposed := v_exposed - m.hold_exposed;
        v_key_exposed := v_key_exposed - m.hold_exposed;
        v_free := least(v_available - v_exposed - v_lost - v_others, v_remaining + m.hold_exposed - v_key_others);
        v_held := v_held - v_hold;
        v_key_held := v_key_held - v_hold;
        closed_tid := closed_tid || m.h_tid;
      end if;
      v_outcome := case when m.amount is null then 'released' else 'settled' end;
      outcome[m.i] := v_outcome;
      state[m.i] := v_outcome;
      v_charged := least(coalesce(m.amount, 0), v_hold
        + case when m.beyond then greatest(v_free, 0) else 0 end);
      charged[m.i] := v_charged;
      v_available := v_available + v_hold - v_charged;
      v_entries := v_entries + 1;
      v_spent := v_spent + v_charged;
      remaining[m.i] := m.limit_month - v_spent - v_key_held - v_key_exposed - v_key_lost;
      v_upstream := m.upstream;
      v_owed := coalesce((v_upstream ->> 'cost')::bigint, 0);
      v_basis := v_upstream ->> 'basis';
      upstream[m.i] := case when v_basis <> 'unknown' then v_owed end;
      n := n + 1;
      entry := entry || row(m.account_id, v_entries, case when m.amount is null then 'release' else 'settle' end,
        m.ref, case when is_late then 'late' else 'close' end, v_currency, v_hold - v_charged, -v_hold, 0,
        coalesce(m.amount, 0), v_charged - coalesce(m.amount, 0), 0,
        v_available, v_held, m.key_id, coalesce(m.end_model, m.model, m.call_model), coalesce(m.kind, m.call_kind),
        case when m.amount is not null then m.units end, null,
        v_month, p_now, v_upstream ->> 'provider', v_upstream ->> 'route', v_owed, -v_owed, v_basis,
        (v_upstream ->> 'base')::bigint, v_upstream ->> 'currency',
        case v_basis when 'unknown' then 1 else 0 end, m.project_id)::ledger_entries;
    end if;
    available[m.i] := v_available - v_exposed - v_lost;
    a_last[a] := n;
    a_exposed[a] := v_exposed;
    if k_at > k then
      k := k_at;
      k_id[k] := v_budget;
      k_tid[k] := m.k_tid;
      k_month[k] := v_month;
    end if;
    k_spent[k_at] := v_spent;
    k_held[k_at] := v_key_held;
    k_exposed[k_at] := v_key_exposed;
    k_own[k_at] := v_key_own;
    k_others[k_at] := v_key_others;
    k_lost[k_at] := v_key_lost;
    k_recalled[k_at] := v_key_is_recalled;
  end loop;

  update balances b
    set amount = (l.last).available_after + (l.last).held_after, held = (l.last).held_after, entries = (l.last).number,
        exposed = l.exposed
    from (select l.tid, entry[l.n] as last, l.exposed
      from (select unnest(a_tid) as tid, unnest(a_last) as n, unnest(a_exposed) as exposed) l
      where l.n is not null offset 0) l
    where b.ctid = l.tid;
  get diagnostics v_rows = row_count;
  update budgets k set month = n.month, spent = n.spent, held = n.held, exposed = n.exposed
    from (select unnest(k_tid) as tid, unnest(k_month) as month, unnest(k_spent) as spent, unnest(k_held) as held,
        unnest(k_exposed) as exposed) n
    where k.ctid = n.tid;
  get diagnostics v_key_rows = row_count;
  -- Else somebody wrote to the tables by hand, without the account's lock.
  if v_rows <> cardinality(array_remove(a_last, null)) or v_key_rows <> k then
    raise exception 'a balance or budget was changed without the lock of its account'
      using errcode = 'serialization_failure';
  end if;
  delete from open_holds where ctid = any (closed_tid);
  insert into open_holds select o.* from unnest(opened) o;
  if granted is not null then
    insert into leases select g.* from unnest(granted) g order by g.account_id, g.resource
      on conflict (account_id, resource, node_id) do update
        set amount = excluded.amount, in_use = excluded.in_use, ends_at = excluded.ends_at;
  end if;
  insert into ledger_entries select e.* from unnest(entry) e;
end $$;
