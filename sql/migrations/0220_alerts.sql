-- Something that people are to hear of: of an account, or of those who run the service.
-- room: alerts
create table alerts (
  id text primary key,
  account_id text references accounts (id), -- null: for operators
  kind text not null,
  subject text not null, -- of several of one kind: the key, the provider, the amount; else ''
  level smallint not null check (level in (1, 2)), -- 2: critical
  title text not null check (length(title) between 1 and 200),
  summary text not null check (length(summary) between 1 and 2000),
  mark bigint, -- how far its cause was read: of a balance, the number of the last entry
  remind_after interval not null,
  opened_at timestamptz not null,
  seen_at timestamptz not null, -- when its cause was last there
  closed_at timestamptz,
  is_withdrawn boolean not null default false, -- closed because nobody asks for it any more: there is nothing to say
  check (closed_at is not null or not is_withdrawn)
);
-- One is open for each cause, whichever node sees it.
create unique index alerts_open on alerts (coalesce(account_id, ''), kind, subject) where closed_at is null;
create index alerts_closed on alerts (closed_at) where closed_at is not null;
create index alerts_of_account on alerts (account_id, opened_at);

-- One message about an alert by one channel. A node that sends it has claimed it before.
-- room: alerts
create table alert_notices (
  alert_id text not null references alerts (id) on delete cascade,
  channel text not null check (channel in ('mail', 'webhook')),
  scope text not null, -- the account, or '' of operators: messages per hour are limited for each
  number int not null check (number >= 1),
  event text not null check (event in ('opened', 'raised', 'reminder', 'closed')),
  level smallint not null,
  state text not null check (state in ('claimed', 'waiting', 'sent', 'failed')), -- waiting: it failed, and is tried again
  claims int not null check (claims >= 1), -- without an answer
  failures int not null default 0 check (failures >= 0),
  claimed_at timestamptz not null,
  retry_at timestamptz,
  sent_at timestamptz,
  error text,
  primary key (alert_id, channel, number),
  check ((state = 'waiting') = (retry_at is not null)),
  check ((state = 'sent') = (sent_at is not null))
);
create index alert_notices_by_time on alert_notices (scope, channel, claimed_at);

-- How an account hears of its alerts. Without a row the defaults of src/alerts/settings.ts count.
-- room: alerts
create table alert_settings (
  account_id text primary key references accounts (id),
  key_limit boolean not null,
  webhooks_failing boolean not null,
  error_percent smallint check (error_percent between 1 and 100), -- null: no alert
  roles text[] not null, -- members with these get mails
  webhook_url text,
  quiet_from smallint check (quiet_from between 0 and 1439), -- minutes of the day
  quiet_to smallint check (quiet_to between 0 and 1439),
  time_zone text,
  per_hour_max smallint not null check (per_hour_max between 1 and 100),
  updated_at timestamptz not null,
  check ((quiet_from is null) = (quiet_to is null) and (quiet_from is null) = (time_zone is null)),
  check (quiet_from <> quiet_to)
);

-- The disks of the machines that run the service, as each process reports its own.
-- room: alerts
create table disks (
  host text not null,
  path text not null,
  free_bytes bigint not null check (free_bytes >= 0),
  size_bytes bigint not null check (size_bytes > 0),
  seen_at timestamptz not null,
  primary key (host, path)
);

-- People who got the mail of a low balance, which alerts take the place of, do not get it again.
insert into alerts (id, account_id, kind, subject, level, title, summary, mark, remind_after, opened_at, seen_at)
  select 'alert_' || left(md5(account_id), 26), account_id, 'balance_low',
      threshold / 1000000 || '.' || lpad((threshold % 1000000)::text, 6, '0'), 1, 'Low balance',
      'The account has less available than the amount of its alert.', seen_entry, interval '1 day', told_at, now()
    from balance_alerts where told_at is not null;
insert into alert_notices (alert_id, channel, scope, number, event, level, state, claims, claimed_at, sent_at)
  select id, 'mail', account_id, 1, 'opened', 2, 'sent', 1, now(), now() from alerts where account_id is not null;
