-- The tables of delivery slots get the names that the code has for what is in them. Nodes of the version before run on
-- meanwhile, and so do calls that have begun: for them the old names stay as views, through which they read and write,
-- until the next version drops them. The column deliveries.lane, the endpoint, keeps its name: decision 74.

-- One row per attempt in flight, and per slot that was handed on to a job not yet begun.
-- room: webhooks
alter table places rename to delivery_slots;
alter table delivery_slots rename column lane to endpoint;
alter table delivery_slots rename constraint places_pkey to delivery_slots_pkey;
alter index places_by_lane rename to delivery_slots_by_endpoint;
alter index places_by_host rename to delivery_slots_by_host;
-- room: former
create view places as
  select account_id, delivery_id, endpoint as lane, host, claim, taken_at, expires_at from delivery_slots;

-- Deliveries that wait for a slot, without a job. queue_for: what is full.
-- room: webhooks
alter table parked rename to throttled_deliveries;
alter table throttled_deliveries rename column lane to endpoint;
alter table throttled_deliveries rename constraint parked_pkey to throttled_deliveries_pkey;
alter table throttled_deliveries drop constraint parked_queue_for_check;
update throttled_deliveries set queue_for = 'endpoint' where queue_for = 'lane';
alter table throttled_deliveries
  add constraint throttled_deliveries_queue_for_check check (queue_for in ('endpoint', 'host'));
alter index parked_by_lane rename to throttled_deliveries_by_endpoint;
alter index parked_by_host rename to throttled_deliveries_by_host;
-- room: former
create view parked as
  select account_id, delivery_id, endpoint as lane, host, retry, since, queue_for from throttled_deliveries;

-- Endpoints whose last attempt timed out.
-- room: webhooks
alter table slow_lanes rename to slow_endpoints;
alter table slow_endpoints rename column lane to endpoint;
alter table slow_endpoints rename constraint slow_lanes_pkey to slow_endpoints_pkey;
alter index slow_lanes_by_age rename to slow_endpoints_by_age;
-- room: former
create view slow_lanes as select endpoint as lane, since from slow_endpoints;
