-- Deletes what would let somebody in who has read an older link: sign-in links, links for a new password, links that
-- move the address, sign-ins that wait for their code, and browsers that are asked for none. The trigger's argument is
-- the column that holds the person. Who has proved no address yet keeps the link to their first one when a second factor
-- is turned on: accounts ask newcomers for it at once.
--
-- Triggers, because the library makes these changes in many places; on updates alone, so that a backup is put back as
-- it was. Whoever gets a first password has voidLinks (login-links.ts) do the same.
create or replace function void_links() returns trigger language plpgsql as $$
declare
  v_user text := to_jsonb(new) ->> tg_argv[0];
begin
  delete from public.login_links where user_id = v_user;
  delete from auth.verification where value = v_user;
  if tg_table_name = 'account' or (to_jsonb(new) ->> 'emailVerified')::boolean then
    delete from public.email_claims where user_id = v_user;
  end if;
  return null;
end $$;

create or replace trigger password_changed after update of password on auth.account
  for each row execute function void_links('userId');
create or replace trigger person_changed after update of email, "twoFactorEnabled" on auth."user" for each row
  when (old.email <> new.email or coalesce(old."twoFactorEnabled", false) <> coalesce(new."twoFactorEnabled", false))
  execute function void_links('id');
