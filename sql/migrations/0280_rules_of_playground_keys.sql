-- The key of a playground has a monthly limit and no other rule: those that somebody has set were never obeyed, and the pages
-- showed them. They are refused from now on.
-- module: accounts
update api_keys set expires_at = null, scopes = null, addresses = null, models = null, requests_per_minute = null
  where (kind = 'playground' or playground_project is not null)
    and num_nonnulls(expires_at, scopes, addresses, models, requests_per_minute) > 0;
