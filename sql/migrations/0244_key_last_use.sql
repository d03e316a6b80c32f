-- The last time at which a key was used, to about a minute; and for keys that were there before, since when that is noted.
alter table api_keys add column last_used_at timestamptz;
alter table api_keys add column use_noted_since timestamptz default now();
alter table api_keys alter column use_noted_since drop default;
