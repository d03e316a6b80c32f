-- An endpoint can narrow events of tasks to projects. An event has the project of its key when it was published.
alter table webhook_endpoints add column project_ids text[] check (cardinality(project_ids) between 1 and 50); -- null: any
alter table webhook_events add column project_id text; -- of a task; null: published before there were any
