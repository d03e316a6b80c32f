-- Returns what is to be said of an alert by a channel whose newest notice is n, or null: nothing, or not yet. Locks nothing.
--
-- A claim of five minutes ago, ten times as long as a mail takes, is that of a process which died: the message is sent
-- once more. One that was claimed twice without an answer counts as sent.
--
-- A budget is told once in a period, without a reminder.
--
-- Reminders come once a week after the first week, and end after thirty days, if the alert is that of an account: who has
-- left an empty account gets no mails for ever.
create or replace function alert_event(a alerts, n alert_notices, p_now timestamptz) returns text language plpgsql as $$
begin
  if a.is_withdrawn
      or n.state = 'waiting' and n.retry_at > p_now
      or n.state = 'claimed' and n.claimed_at > p_now - interval '5 minutes' then
    return null;
  elsif n.number is null then
    return case when a.closed_at is null then 'opened' end;
  elsif n.state = 'waiting' or n.state = 'claimed' and n.claims < 2 then
    return case when a.closed_at is null or n.event = 'closed' then n.event
      when n.number > 1 or n.state = 'claimed' then 'closed' end; -- of one that nobody heard of, the end is no news
  elsif n.event = 'closed' then
    return null;
  elsif a.closed_at is not null then
    return 'closed';
  elsif a.level > n.level then
    return 'raised';
  elsif a.kind = 'budget' or p_now >= a.opened_at + interval '30 days' and a.account_id is not null then
    return null;
  elsif p_now >= coalesce(n.sent_at, n.claimed_at)
      + (case when p_now < a.opened_at + interval '7 days' then a.remind_after else interval '7 days' end) then
    return 'reminder';
  end if;
  return null;
end $$;
