-- Deliveries tell of alerts, too.
alter table deliveries drop constraint deliveries_event_check;
alter table deliveries add constraint deliveries_event_check check (event in ('task.succeeded', 'task.failed',
  'alert.opened', 'alert.raised', 'alert.reminder', 'alert.closed', 'alert.test'));
