-- Refuses every change of the audit log, but the removal of entries older than a moment that the transaction has named
-- for that (medley.audit_before): they have been kept for as long as the configuration says.
create or replace function refuse_audit_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and old.created_at < nullif(current_setting('medley.audit_before', true), '')::timestamptz then
    return old;
  end if;
  raise exception 'audit entries are never changed or deleted' using errcode = 'restrict_violation';
end $$;

create or replace trigger audit_entries_immutable before update or delete on audit_entries
  for each row execute function refuse_audit_change();
create or replace trigger audit_entries_not_truncated before truncate on audit_entries
  for each statement execute function refuse_audit_change();
