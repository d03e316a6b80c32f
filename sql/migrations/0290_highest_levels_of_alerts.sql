-- The highest level that an alert has had: one that goes back and forth is published as critical once. Nodes of the
-- version before write none.
-- module: alerts
alter table alerts add column level_max smallint not null default 1 check (level_max in (1, 2));
update alerts set level_max = level where closed_at is null;
