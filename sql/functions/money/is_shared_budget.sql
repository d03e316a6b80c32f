-- Tells whether two keys share a budget, as those of a rotation do; a key shares its own.
create or replace function is_shared_budget(p_key text, p_other text) returns boolean language plpgsql stable as $$
begin
  return exists (
    select from budgets k join budgets o on coalesce(o.shares, o.key_id) = coalesce(k.shares, k.key_id)
     where k.key_id = p_key and o.key_id = p_other);
end $$;
