-- Ends all sessions of a person whose password or second factor has changed; the login library then begins a new one
-- for who made the change. The trigger's argument is the column that holds the person.
create or replace function end_sessions() returns trigger language plpgsql as $$
begin
  delete from auth.session where "userId" = to_jsonb(new) ->> tg_argv[0];
  return null;
end $$;

create or replace trigger password_ends_sessions after update of password on auth.account
  for each row execute function end_sessions('userId');
create or replace trigger factor_ends_sessions after update of "twoFactorEnabled" on auth."user" for each row
  when (coalesce(old."twoFactorEnabled", false) <> coalesce(new."twoFactorEnabled", false))
  execute function end_sessions('id');
