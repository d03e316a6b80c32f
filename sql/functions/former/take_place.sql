-- take_slot for calls of begin_deliveries that are under way while functions are replaced.
create or replace function take_place(d deliveries, p_claim text, p_now timestamptz) returns text language plpgsql as $$
begin
  return take_slot(d, p_claim, p_now);
end $$;
