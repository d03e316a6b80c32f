-- Tells whether what a key does counts in a budget. p_project is null for the default project, p_key is the key that has
-- the budget, p_member who made it. Locks nothing.
create or replace function is_in_budget(
  p_scope text, p_subject text, p_project text, p_key text, p_member text
) returns boolean immutable parallel safe language sql as $$
  select case p_scope when 'account' then true when 'project' then coalesce(p_project, 'default') = p_subject
    when 'key' then p_key = p_subject else coalesce(p_member = p_subject, false) end
$$;
