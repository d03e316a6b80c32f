-- A trigger: calls that began before functions were replaced queue a delivery for its lane, which is its endpoint. The
-- next version drops the trigger by a migration.
create or replace function say_endpoint() returns trigger language plpgsql as $$
begin
  if new.queue_for = 'lane' then
    new.queue_for := 'endpoint';
  end if;
  return new;
end $$;
create or replace trigger throttled_deliveries_say_endpoint before insert or update on throttled_deliveries
  for each row execute function say_endpoint();
