-- What a stolen session, a code that was read or a browser that was trusted is good for ends early.

-- When the person of a session last gave their password or followed a sign-in link; null: when it began.
alter table auth.session add column "provedAt" timestamptz;

-- The time step of the last code that counted (RFC 6238): codes of this step and of earlier ones count no more.
alter table auth."twoFactor" add column "lastStep" bigint;

-- A link that its person asked for by mail asks for the second factor; one that an operator hands over does not.
alter table login_links add column by_mail boolean not null default false;

-- A new password and another second factor end all sessions; the library then begins a new one for who made the change.
-- Its argument is the column that holds the person.
-- room: accounts
create function end_sessions() returns trigger language plpgsql as $$
begin
  delete from auth.session where "userId" = to_jsonb(new) ->> tg_argv[0];
  return null;
end $$;
create trigger password_ends_sessions after update of password on auth.account
  for each row execute function end_sessions('userId');
create trigger factor_ends_sessions after update of "twoFactorEnabled" on auth."user" for each row
  when (coalesce(old."twoFactorEnabled", false) <> coalesce(new."twoFactorEnabled", false))
  execute function end_sessions('id');
