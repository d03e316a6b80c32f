-- insert_file for nodes of the version before.
create or replace function add_file(
  p_now timestamptz, p_account text, p_id text, p_key text, p_task text, p_filename text, p_purpose text,
  p_storage_key text, p_kind text, p_content_type text, p_size_bytes bigint, p_width int, p_height int,
  p_duration_ms int, p_expires_at timestamptz, p_count_max int, p_size_bytes_max bigint
) returns text language plpgsql as $$
begin
  return insert_file(jsonb_build_object('account_id', p_account, 'id', p_id, 'key_id', p_key, 'task_id', p_task,
    'filename', p_filename, 'purpose', p_purpose, 'storage_key', p_storage_key, 'kind', p_kind,
    'content_type', p_content_type, 'size_bytes', p_size_bytes, 'width', p_width, 'height', p_height,
    'duration_ms', p_duration_ms, 'created_at', p_now, 'expires_at', p_expires_at), p_count_max, p_size_bytes_max);
end $$;
