-- Refuses every change of the audit log.
create or replace function refuse_audit_change() returns trigger language plpgsql as $$
begin
  raise exception 'audit entries are never changed or deleted' using errcode = 'restrict_violation';
end $$;

create or replace trigger audit_entries_immutable before update or delete on audit_entries
  for each row execute function refuse_audit_change();
create or replace trigger audit_entries_not_truncated before truncate on audit_entries
  for each statement execute function refuse_audit_change();
