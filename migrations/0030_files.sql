-- Files of callers: what they uploaded, and what the inputs of their tasks brought along.

-- room: files
create table files (
  account_id text not null references accounts,
  id text not null,
  key_id text not null references api_keys,
  task_id text,              -- of whose input it is a part: in no list, counted in no limit, gone with the task
  filename text not null,
  purpose text not null,
  storage_key text not null,
  -- Measured from the bytes.
  kind text not null check (kind in ('image', 'video', 'audio')),
  content_type text not null,
  size_bytes bigint not null check (size_bytes > 0),
  width int,
  height int,
  duration_ms int,
  ready boolean not null default false, -- false until the bytes are stored: the row is there first
  created_at timestamptz not null,
  expires_at timestamptz not null, -- from then on it is gone for its owner, and soon after for us
  primary key (account_id, id)
);
create index files_by_expiry on files (expires_at);
create index files_of_tasks on files (account_id, task_id) where task_id is not null;

-- Writes a file down before its bytes are stored, unless the account has too many of them. The lock makes
-- uploads of one account count one another. outcome: added; too_many; too_much.
-- room: files
create function add_file(
  p_now timestamptz, p_account text, p_id text, p_key text, p_task text, p_filename text, p_purpose text,
  p_storage_key text, p_kind text, p_content_type text, p_size_bytes bigint, p_width int, p_height int,
  p_duration_ms int, p_expires_at timestamptz, p_count_max int, p_size_bytes_max bigint
) returns text language plpgsql as $$
declare
  used record;
begin
  if p_task is null then
    perform pg_advisory_xact_lock(hashtextextended('files ' || p_account, 0));
    select count(*) as files, coalesce(sum(size_bytes), 0) as bytes into used from files
      where account_id = p_account and task_id is null and expires_at > p_now;
    if used.files >= p_count_max then
      return 'too_many';
    elsif used.bytes + p_size_bytes > p_size_bytes_max then
      return 'too_much';
    end if;
  end if;
  insert into files (account_id, id, key_id, task_id, filename, purpose, storage_key, kind, content_type, size_bytes,
      width, height, duration_ms, created_at, expires_at)
    values (p_account, p_id, p_key, p_task, p_filename, p_purpose, p_storage_key, p_kind, p_content_type, p_size_bytes,
      p_width, p_height, p_duration_ms, p_now, p_expires_at)
    on conflict (account_id, id) do nothing; -- an earlier call whose answer was lost
  return 'added';
end $$;
