-- What a key is for: programs of its account, or the dashboard's playground. Its name does not tell: names are
-- whatever people like, and two keys may have the same.

-- room: accounts
alter table api_keys add column kind text not null default 'program' check (kind in ('program', 'playground'));

-- Until now the playground took the oldest key of this name. One that somebody made is in the audit log, and stays
-- a key of programs.
update api_keys set kind = 'playground' where id in (
  select distinct on (account_id) id from api_keys k
    where name = 'Playground' and deleted_at is null
      and not exists (select from audit_entries where action in ('key.create', 'key.rotate')
        and (subject = k.id or details ->> 'new_key' = k.id))
    order by account_id, created_at, id
);

-- However many nodes begin at once.
create unique index api_keys_playground on api_keys (account_id) where kind = 'playground' and deleted_at is null;
