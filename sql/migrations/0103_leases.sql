-- What a call may cost beyond its hold is kept free by the database, so that every node sees it. Before, the one API node
-- that there could be kept it in its memory.
alter table balances add column exposed bigint not null default 0; -- of all open holds
alter table budgets add column exposed bigint not null default 0; -- of the open holds of the key
alter table open_holds add column exposed bigint not null default 0;

-- room: money
create or replace function is_sound(r balances) returns boolean immutable language plpgsql as $$
begin
  return r.held >= 0 and r.exposed >= 0 and r.amount >= r.held + r.exposed and r.amount <= 1000000000000000;
end $$;

-- room: money
create or replace function is_sound(r budgets) returns boolean immutable language plpgsql as $$
begin
  if r.spent + r.held > r.limit_month
      and r.spent + r.held > r.limited_held + (case when r.month = r.limited_month then r.limited_spent else 0 end)
    or r.shares is not null and (r.spent <> 0 or r.held <> 0 or r.exposed <> 0 or r.limit_month is not null) then
    return false;
  end if;
  return r.spent >= 0 and r.held >= 0 and r.exposed >= 0 and coalesce(r.limit_month, 0) between 0 and 1000000000000000
    and r.month = date_trunc('month', r.month::timestamp);
end $$;

-- room: money
create or replace function hold_is_sound(r open_holds) returns boolean immutable language plpgsql as $$
begin
  return r.amount >= 0 and r.exposed >= 0 and r.kind in ('chat', 'image', 'video', 'audio', 'embedding');
end $$;

-- A lease: an amount that one node may spend without asking, until its end. What is leased to one node is given to no
-- other. It ends by itself, so that a node that dies or sleeps takes nothing with it for long.
--
-- Resources: `money` of the account, and `limit <key>` of what a key may still spend this month, both changed only under
-- the lock of the account's balance.
-- room: leases
create table leases (
  account_id text not null,
  resource text not null,
  node_id text not null, -- '': nodes shall give back what they do not use, and get nothing more until it ends
  amount bigint not null,
  in_use bigint not null default 0, -- of that, reserved by its node when it asked for the lease
  ends_at timestamptz not null, -- by the database's clock
  primary key (account_id, resource, node_id),
  check (in_use >= 0 and amount >= in_use)
) with (fillfactor = 50);

-- Nodes that have leases, and when each said last that it is alive: the leases of one that says nothing count no longer.
-- room: leases
create table lessees (
  node_id text primary key,
  seen_at timestamptz not null, -- by the database's clock
  has_stopped boolean not null default false -- it has ended its leases of money, and only its shares of limits count
) with (fillfactor = 10);
