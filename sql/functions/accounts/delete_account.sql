-- Deletes an account that never had money or work. Locks its balance. Returns deleted, or why it stays: absent, money
-- or history (some table names it by a foreign key).
create or replace function delete_account(p_account_id text) returns text language plpgsql as $$
declare
  v_entries bigint;
begin
  select entries into v_entries from balances where account_id = p_account_id for update;
  if not found then
    return 'absent';
  elsif v_entries > 0 then
    return 'money';
  elsif exists (select from open_holds where account_id = p_account_id)
     or exists (select from chat_calls where account_id = p_account_id) then
    return 'history';
  end if;
  begin
    delete from stored_responses where account_id = p_account_id;
    delete from background_responses where account_id = p_account_id;
    delete from conversations where account_id = p_account_id;
    delete from book_key_marks where key_id in (select id from api_keys where account_id = p_account_id);
    delete from book_marks where account_id = p_account_id;
    delete from usage_marks where account_id = p_account_id;
    delete from account_budgets where account_id = p_account_id;
    delete from projects where account_id = p_account_id;
    delete from budgets where account_id = p_account_id;
    delete from api_keys where account_id = p_account_id;
    delete from balances where account_id = p_account_id;
    delete from billing_details where account_id = p_account_id;
    delete from balance_alerts where account_id = p_account_id;
    delete from alerts where account_id = p_account_id;
    delete from webhook_events where account_id = p_account_id;
    delete from webhook_endpoints where account_id = p_account_id;
    delete from alert_settings where account_id = p_account_id;
    delete from auth.organization where id = p_account_id;
    delete from accounts where id = p_account_id;
  exception when foreign_key_violation then
    return 'history';
  end;
  return 'deleted';
end $$;
