-- Tells whether an entry of the ledger may be removed: its month is closed, and nothing refers to it. What is left are
-- top-ups and corrections, which are booked once by their ref, and what belongs to a hold that ended later or is open.
-- Locks nothing.
create or replace function is_closed(e ledger_entries) returns boolean stable language sql as $$
  select e.type not in ('topup', 'adjustment')
    and exists (select from ledger_openings n where n.account_id = e.account_id and n.number >= e.number
      and not exists (select from ledger_entries l
        where l.ref = e.ref and l.account_id is not distinct from e.account_id and l.number > n.number))
    and not exists (select from open_holds h where h.account_id = e.account_id and h.ref = e.ref)
$$;
