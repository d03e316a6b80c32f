-- The rules by which the content of a key's chat calls is stored. Null, as for all keys so far: none is stored.
alter table api_keys add column log_content jsonb;
