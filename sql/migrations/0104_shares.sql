-- Leases of requests in a window and of calls at once (take_shares). What of them is in use is free again by itself:
alter table leases add column frees_at timestamptz; -- the first of it then
