-- A number that grows with every change to what a node remembers of callers. A node asks for it twice a second and
-- keeps all it knows while it stays the same; before, each key was looked up again every 900 ms, which was one
-- statement in three of a chat call of a key that is used once a second.

-- room: accounts
create table callers_version (
  only_row boolean primary key default true check (only_row),
  version bigint not null default 0
);
insert into callers_version default values;

-- In the transaction of the change: who reads the new number reads the change too.
-- room: accounts
create function note_caller_change() returns trigger language plpgsql as $$
begin
  update callers_version set version = version + 1;
  return null;
end $$;
create trigger callers_change after update of id, account_id, name, hash, deleted_at or delete on api_keys
  for each statement execute function note_caller_change();
create trigger callers_change after update of id, name, currency, status or delete on accounts
  for each statement execute function note_caller_change();
