-- What a key may be used for beyond its limit: until when, for what, and from where. Null: no rule.

-- room: accounts
alter table api_keys
  add column expires_at timestamptz,
  add column scopes text[] check (scopes <@ array['chat', 'media', 'read'] and cardinality(scopes) > 0),
  add column addresses text[] check (cardinality(addresses) between 1 and 50);

drop trigger callers_change on api_keys;
create trigger callers_change
  after update of id, account_id, name, hash, deleted_at, expires_at, scopes, addresses or delete on api_keys
  for each statement execute function note_caller_change();
