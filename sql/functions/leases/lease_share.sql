-- Returns what a node may take of p_free for what it has reserved: what is not leased to others, but at least what is
-- leased to itself. The lease of another node may still count what that one has spent of it, so the sum of all may be
-- above p_free, while what they may still spend is not. Null, without a limit, stays null.
-- Reads nothing.
create or replace function lease_share(p_free bigint, p_own bigint, p_others bigint)
  returns bigint immutable parallel safe language sql as $$
  select case when p_free is not null then greatest(p_free - p_others, least(p_own, p_free)) end
$$;
