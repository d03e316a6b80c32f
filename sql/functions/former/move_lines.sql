-- move_backlog for nodes of the version before.
create or replace function move_lines(p_host text, p_now timestamptz) returns void language plpgsql as $$
begin
  perform move_backlog(p_host, p_now);
end $$;
