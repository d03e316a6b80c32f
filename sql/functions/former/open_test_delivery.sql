-- add_test_delivery for nodes of the version before.
create or replace function open_test_delivery(
  p_now timestamptz, p_account text, p_id text, p_url text, p_body text, p_lane text, p_host text, p_claim text,
  p_timeout_ms float8
) returns void language plpgsql as $$
begin
  perform add_test_delivery(p_now, jsonb_build_object('account_id', p_account, 'id', p_id, 'url', p_url, 'body', p_body,
    'lane', p_lane, 'host', p_host), p_claim, p_timeout_ms);
end $$;
