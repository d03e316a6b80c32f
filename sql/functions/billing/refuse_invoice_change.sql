-- Refuses every change of an invoice.
create or replace function refuse_invoice_change() returns trigger language plpgsql as $$
begin
  raise exception 'invoices are never changed or deleted' using errcode = 'restrict_violation';
end $$;

create or replace trigger invoices_immutable before update or delete on invoices
  for each row execute function refuse_invoice_change();
create or replace trigger invoices_not_truncated before truncate on invoices
  for each statement execute function refuse_invoice_change();
