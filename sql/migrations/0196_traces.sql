-- The place in a trace at which a task was created, as the header traceparent says it; null where it is in none.
alter table tasks add column traceparent text;
alter table deliveries add column traceparent text;
