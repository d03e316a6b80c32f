-- Keys of members who are limited to projects: they call models, and read what keys of their own project made
-- (docs/decisions/0131).
alter table api_keys add column is_limited boolean not null default false;

-- The key by which limited members use the playground for a project; keys of the playground for everybody have no project here.
alter table api_keys add column playground_project text;
create unique index api_keys_playground_of_project on api_keys (account_id, playground_project)
  where playground_project is not null and deleted_at is null;
