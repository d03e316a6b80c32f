-- The requests per minute, of each kind, that a key has of its own. Null, as for all keys so far: the limits of the service alone.
alter table api_keys add column requests_per_minute integer;
alter table api_keys add constraint api_keys_requests_per_minute_check check (requests_per_minute >= 1) not valid;
