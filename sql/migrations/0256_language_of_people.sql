-- The language in which a person reads the dashboard: null follows the browser.
-- room: accounts
alter table auth."user" add column language text check (language ~ '^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$');
