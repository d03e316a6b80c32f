-- The schema of the database, which sql/migrations and sql/functions come to.
-- Written by "npm run schema", and compared by a test: change those, never this file.

create table account_budgets (
  id text not null,
  account_id text not null,
  name text not null,
  scope text not null,
  subject text,
  period text not null,
  amount bigint not null,
  is_hard boolean not null,
  created_at timestamptz not null,
  period_start timestamptz not null,
  spent bigint not null default 0,
  held bigint not null default 0,
  exposed bigint not null default 0,
  opening bigint not null default 0,
  since bigint not null default 0,
  allowed bigint not null default 0,
  alert_percents smallint[] not null default '{50,80,100}'::smallint[],
  constraint account_budgets_pkey PRIMARY KEY (id),
  constraint account_budgets_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint account_budgets_alert_percents_check CHECK (((alert_percents <@ '{50,80,100}'::smallint[]) AND (cardinality(alert_percents) <= 3))),
  constraint account_budgets_are_sound CHECK (is_sound(account_budgets.*)),
  constraint account_budgets_check CHECK (((scope = 'account'::text) = (subject IS NULL))),
  constraint account_budgets_check1 CHECK ((is_hard OR ((spent = 0) AND (held = 0) AND (exposed = 0)))),
  constraint account_budgets_name_check CHECK (((length(name) >= 1) AND (length(name) <= 100))),
  constraint account_budgets_period_check CHECK ((period = ANY (ARRAY['day'::text, 'week'::text, 'month'::text, 'total'::text]))),
  constraint account_budgets_scope_check CHECK ((scope = ANY (ARRAY['account'::text, 'project'::text, 'key'::text, 'member'::text])))
) with (fillfactor=50);
CREATE INDEX account_budgets_of_account ON account_budgets USING btree (account_id, id);

create table accounts (
  id text not null,
  name text not null,
  currency text not null,
  status text not null default 'active'::text,
  webhook_secret text not null,
  created_at timestamptz not null,
  webhook_secret_before text,
  webhook_secret_rotated_at timestamptz,
  keeps_responses boolean not null default true,
  second_factor_required boolean not null default false,
  constraint accounts_id_currency_key UNIQUE (id, currency),
  constraint accounts_pkey PRIMARY KEY (id),
  constraint accounts_check CHECK (((webhook_secret_before IS NULL) = (webhook_secret_rotated_at IS NULL))),
  constraint accounts_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
  constraint accounts_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
  constraint accounts_status_check CHECK ((status = ANY (ARRAY['active'::text, 'blocked'::text]))),
  constraint accounts_webhook_secret_before_check CHECK ((webhook_secret_before ~~ 'whsec\_%'::text)),
  constraint accounts_webhook_secret_check CHECK ((webhook_secret ~~ 'whsec\_%'::text))
);
CREATE TRIGGER callers_change AFTER DELETE OR UPDATE OF id, name, currency, status ON accounts
  FOR EACH STATEMENT EXECUTE FUNCTION note_caller_change();

create table added_models (
  id text not null,
  provider text not null,
  entry json,
  shipped text,
  margin text,
  price json,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint added_models_pkey PRIMARY KEY (id),
  constraint added_models_provider_fkey FOREIGN KEY (provider) REFERENCES added_providers(name) ON DELETE CASCADE,
  constraint added_models_check CHECK (((entry IS NULL) <> (shipped IS NULL))),
  constraint added_models_entry_check CHECK ((json_typeof(entry) = 'object'::text)),
  constraint added_models_margin_check CHECK ((margin ~ '^[0-9]{1,3}([.][0-9]{1,4})?$'::text)),
  constraint added_models_price_check CHECK ((json_typeof(price) = 'array'::text))
);
CREATE INDEX added_models_by_provider ON added_models USING btree (provider);

create table added_providers (
  name text not null,
  preset text,
  entry json not null,
  key_id text,
  api_key bytea,
  last_four text,
  prefix text not null,
  margin text not null,
  is_off boolean not null default false,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint added_providers_pkey PRIMARY KEY (name),
  constraint added_providers_check CHECK (((api_key IS NULL) = (last_four IS NULL))),
  constraint added_providers_entry_check CHECK ((json_typeof(entry) = 'object'::text)),
  constraint added_providers_margin_check CHECK ((margin ~ '^[0-9]{1,3}([.][0-9]{1,4})?$'::text)),
  constraint added_providers_name_check CHECK ((name ~ '^[a-z0-9][a-z0-9_-]{0,63}$'::text))
);

create table alert_notices (
  alert_id text not null,
  channel text not null,
  scope text not null,
  number integer not null,
  event text not null,
  level smallint not null,
  state text not null,
  claims integer not null,
  failures integer not null default 0,
  claimed_at timestamptz not null,
  retry_at timestamptz,
  sent_at timestamptz,
  error text,
  constraint alert_notices_pkey PRIMARY KEY (alert_id, channel, number),
  constraint alert_notices_alert_id_fkey FOREIGN KEY (alert_id) REFERENCES alerts(id) ON DELETE CASCADE,
  constraint alert_notices_channel_check CHECK ((channel = ANY (ARRAY['mail'::text, 'webhook'::text]))),
  constraint alert_notices_check CHECK (((state = 'waiting'::text) = (retry_at IS NOT NULL))),
  constraint alert_notices_check1 CHECK (((state = 'sent'::text) = (sent_at IS NOT NULL))),
  constraint alert_notices_claims_check CHECK ((claims >= 1)),
  constraint alert_notices_event_check CHECK ((event = ANY (ARRAY['opened'::text, 'raised'::text, 'reminder'::text, 'closed'::text]))),
  constraint alert_notices_failures_check CHECK ((failures >= 0)),
  constraint alert_notices_number_check CHECK ((number >= 1)),
  constraint alert_notices_state_check CHECK ((state = ANY (ARRAY['claimed'::text, 'waiting'::text, 'sent'::text, 'failed'::text])))
);
CREATE INDEX alert_notices_by_time ON alert_notices USING btree (scope, channel, claimed_at);

create table alert_settings (
  account_id text not null,
  key_limit boolean not null,
  webhooks_failing boolean not null,
  error_percent smallint,
  roles text[] not null,
  webhook_url text,
  quiet_from smallint,
  quiet_to smallint,
  time_zone text,
  per_hour_max smallint not null,
  updated_at timestamptz not null,
  constraint alert_settings_pkey PRIMARY KEY (account_id),
  constraint alert_settings_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint alert_settings_check CHECK ((((quiet_from IS NULL) = (quiet_to IS NULL)) AND ((quiet_from IS NULL) = (time_zone IS NULL)))),
  constraint alert_settings_check1 CHECK ((quiet_from <> quiet_to)),
  constraint alert_settings_error_percent_check CHECK (((error_percent >= 1) AND (error_percent <= 100))),
  constraint alert_settings_per_hour_max_check CHECK (((per_hour_max >= 1) AND (per_hour_max <= 100))),
  constraint alert_settings_quiet_from_check CHECK (((quiet_from >= 0) AND (quiet_from <= 1439))),
  constraint alert_settings_quiet_to_check CHECK (((quiet_to >= 0) AND (quiet_to <= 1439)))
);

create table alerts (
  id text not null,
  account_id text,
  kind text not null,
  subject text not null,
  level smallint not null,
  title text not null,
  summary text not null,
  mark bigint,
  remind_after interval not null,
  opened_at timestamptz not null,
  seen_at timestamptz not null,
  closed_at timestamptz,
  is_withdrawn boolean not null default false,
  level_max smallint not null default 1,
  constraint alerts_pkey PRIMARY KEY (id),
  constraint alerts_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint alerts_check CHECK (((closed_at IS NOT NULL) OR (NOT is_withdrawn))),
  constraint alerts_level_check CHECK ((level = ANY (ARRAY[1, 2]))),
  constraint alerts_level_max_check CHECK ((level_max = ANY (ARRAY[1, 2]))),
  constraint alerts_summary_check CHECK (((length(summary) >= 1) AND (length(summary) <= 2000))),
  constraint alerts_title_check CHECK (((length(title) >= 1) AND (length(title) <= 200)))
);
CREATE INDEX alerts_closed ON alerts USING btree (closed_at) WHERE (closed_at IS NOT NULL);
CREATE INDEX alerts_of_account ON alerts USING btree (account_id, opened_at);
CREATE UNIQUE INDEX alerts_open ON alerts USING btree (COALESCE(account_id, ''::text), kind, subject) WHERE (closed_at IS NULL);

create table api_keys (
  id text not null,
  account_id text not null,
  name text not null,
  hash bytea not null,
  prefix text not null,
  last_four text not null,
  created_at timestamptz not null,
  deleted_at timestamptz,
  kind text not null default 'program'::text,
  budget_id text,
  expires_at timestamptz,
  scopes text[],
  addresses text[],
  log_content jsonb,
  models text[],
  requests_per_minute integer,
  last_used_at timestamptz,
  use_noted_since timestamptz,
  is_limited boolean not null default false,
  playground_project text,
  constraint api_keys_hash_key UNIQUE (hash),
  constraint api_keys_id_account_id_key UNIQUE (id, account_id),
  constraint api_keys_pkey PRIMARY KEY (id),
  constraint api_keys_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint api_keys_budget_id_fkey FOREIGN KEY (budget_id) REFERENCES api_keys(id),
  constraint api_keys_addresses_check CHECK (((cardinality(addresses) >= 1) AND (cardinality(addresses) <= 50))),
  constraint api_keys_hash_check CHECK ((length(hash) = 32)),
  constraint api_keys_kind_check CHECK ((kind = ANY (ARRAY['program'::text, 'playground'::text]))),
  constraint api_keys_models_check CHECK (((cardinality(models) >= 1) AND (cardinality(models) <= 100))) NOT VALID,
  constraint api_keys_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
  constraint api_keys_requests_per_minute_check CHECK ((requests_per_minute >= 1)) NOT VALID,
  constraint api_keys_scopes_check CHECK (((scopes <@ ARRAY['chat'::text, 'media'::text, 'read'::text]) AND (cardinality(scopes) > 0)))
);
CREATE INDEX api_keys_of_account ON api_keys USING btree (account_id, created_at);
CREATE INDEX api_keys_of_budget ON api_keys USING btree (budget_id) WHERE (budget_id IS NOT NULL);
CREATE UNIQUE INDEX api_keys_playground ON api_keys USING btree (account_id) WHERE ((kind = 'playground'::text) AND (deleted_at IS NULL));
CREATE UNIQUE INDEX api_keys_playground_of_project ON api_keys USING btree (account_id, playground_project) WHERE ((playground_project IS NOT NULL) AND (deleted_at IS NULL));
CREATE TRIGGER callers_change AFTER DELETE OR UPDATE OF id, account_id, name, hash, deleted_at, expires_at, scopes, addresses, models, requests_per_minute ON api_keys
  FOR EACH STATEMENT EXECUTE FUNCTION note_caller_change();

create table attempts (
  account_id text not null,
  task_id text not null,
  number integer not null,
  route text not null,
  provider text not null,
  route_settings text not null,
  claim text not null,
  state text not null default 'submitting'::text,
  reason text,
  message text,
  run_ref text,
  upstream_cost text,
  created_at timestamptz not null,
  ended_at timestamptz,
  upstream_amount bigint,
  constraint attempts_pkey PRIMARY KEY (account_id, task_id, number),
  constraint attempts_account_id_task_id_fkey FOREIGN KEY (account_id, task_id) REFERENCES tasks(account_id, id) ON DELETE CASCADE,
  constraint attempts_check CHECK (((state = ANY (ARRAY['submitting'::text, 'accepted'::text])) = (ended_at IS NULL))),
  constraint attempts_check1 CHECK (((state <> 'accepted'::text) OR (run_ref IS NOT NULL))),
  constraint attempts_number_check CHECK ((number >= 1)),
  constraint attempts_state_check CHECK ((state = ANY (ARRAY['submitting'::text, 'accepted'::text, 'done'::text, 'failed'::text, 'not_started'::text, 'ambiguous'::text, 'canceled'::text, 'abandoned'::text])))
);
CREATE INDEX attempts_active ON attempts USING btree (provider, account_id) WHERE (ended_at IS NULL);
CREATE INDEX attempts_begun ON attempts USING btree (provider, created_at);
CREATE INDEX attempts_gone_wrong ON attempts USING btree (ended_at) WHERE (state = ANY (ARRAY['failed'::text, 'not_started'::text, 'ambiguous'::text, 'abandoned'::text]));
CREATE UNIQUE INDEX attempts_open ON attempts USING btree (account_id, task_id) WHERE (ended_at IS NULL);

create table audit_entries (
  id text not null,
  account_id text,
  user_id text,
  actor text not null,
  action text not null,
  subject text,
  details jsonb,
  address text,
  created_at timestamptz not null,
  constraint audit_entries_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_entries_of_account ON audit_entries USING btree (account_id, id);
CREATE TRIGGER audit_entries_immutable BEFORE DELETE OR UPDATE ON audit_entries
  FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER audit_entries_not_truncated BEFORE TRUNCATE ON audit_entries
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();

create table background_contents (
  account_id text not null,
  response_id text not null,
  id text not null,
  first_event integer,
  last_event integer,
  key_id text,
  content bytea not null,
  json_bytes integer not null,
  constraint background_contents_pkey PRIMARY KEY (account_id, response_id, id),
  constraint background_contents_account_id_response_id_fkey FOREIGN KEY (account_id, response_id) REFERENCES background_responses(account_id, id) ON DELETE CASCADE,
  constraint background_contents_json_bytes_check CHECK ((json_bytes >= 0))
);
CREATE INDEX background_contents_by_key ON background_contents USING btree (key_id);

create table background_responses (
  account_id text not null,
  id text not null,
  request_id text not null,
  model text not null,
  currency text not null,
  max_tokens integer not null,
  is_streamed boolean not null,
  status text not null,
  cancel_requested boolean not null default false,
  claim text,
  sent_at timestamptz,
  sent_provider text,
  sent_route text,
  seen_at timestamptz,
  suspected_at timestamptz,
  ended jsonb,
  created_at timestamptz not null,
  begin_before timestamptz not null,
  completed_at timestamptz,
  done_at timestamptz,
  expires_at timestamptz not null,
  constraint background_responses_pkey PRIMARY KEY (account_id, id),
  constraint background_responses_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint background_responses_check CHECK (((status = ANY (ARRAY['queued'::text, 'in_progress'::text])) = (completed_at IS NULL))),
  constraint background_responses_check1 CHECK (((ended IS NULL) = (completed_at IS NULL))),
  constraint background_responses_check2 CHECK (((sent_at IS NULL) OR (claim IS NOT NULL))),
  constraint background_responses_check3 CHECK (((done_at IS NULL) OR (completed_at IS NOT NULL))),
  constraint background_responses_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'in_progress'::text, 'completed'::text, 'incomplete'::text, 'failed'::text, 'cancelled'::text])))
);
CREATE INDEX background_responses_by_end ON background_responses USING btree (expires_at);
CREATE INDEX background_responses_unfinished ON background_responses USING btree (account_id, created_at) WHERE (done_at IS NULL);

create table balance_alerts (
  account_id text not null,
  threshold bigint not null,
  told_at timestamptz,
  updated_at timestamptz not null,
  telling_at timestamptz,
  seen_entry bigint,
  constraint balance_alerts_pkey PRIMARY KEY (account_id),
  constraint balance_alerts_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint balance_alerts_threshold_check CHECK (((threshold >= 1) AND (threshold <= '1000000000000000'::bigint)))
);

create table balances (
  account_id text not null,
  currency text not null,
  amount bigint not null default 0,
  held bigint not null default 0,
  entries bigint not null default 0,
  exposed bigint not null default 0,
  hard_budgets integer not null default 0,
  constraint balances_pkey PRIMARY KEY (account_id),
  constraint balances_account_id_currency_fkey FOREIGN KEY (account_id, currency) REFERENCES accounts(id, currency),
  constraint balances_are_sound CHECK (is_sound(balances.*))
) with (fillfactor=50);

create table batch_lines (
  account_id text not null,
  batch_id text not null,
  number integer not null,
  custom_id text not null,
  start_bytes bigint not null,
  size_bytes integer not null,
  state text not null default 'waiting'::text,
  claim text,
  attempts integer not null default 0,
  not_before timestamptz not null,
  request_id text,
  status_code integer,
  result bytea,
  error_code text,
  charge jsonb,
  constraint batch_lines_pkey PRIMARY KEY (account_id, batch_id, number),
  constraint batch_lines_account_id_batch_id_fkey FOREIGN KEY (account_id, batch_id) REFERENCES batches(account_id, id) ON DELETE CASCADE,
  constraint batch_lines_check CHECK (((state = ANY (ARRAY['answered'::text, 'done'::text])) = ((status_code IS NOT NULL) OR (error_code IS NOT NULL)))),
  constraint batch_lines_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'sent'::text, 'answered'::text, 'done'::text])))
);
CREATE INDEX batch_lines_open ON batch_lines USING btree (account_id, batch_id, state, not_before, number) WHERE (state <> 'done'::text);

create table batches (
  account_id text not null,
  id text not null,
  key_id text not null,
  endpoint text not null,
  input_file_id text not null,
  status text not null default 'validating'::text,
  claim text,
  errors jsonb,
  metadata jsonb not null default '{}'::jsonb,
  keep_s bigint not null,
  total integer not null default 0,
  completed integer not null default 0,
  failed integer not null default 0,
  output_id text,
  error_id text,
  has_output boolean not null default false,
  has_errors boolean not null default false,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  in_progress_at timestamptz,
  finalizing_at timestamptz,
  cancelling_at timestamptz,
  ended_at timestamptz,
  constraint batches_pkey PRIMARY KEY (account_id, id),
  constraint batches_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint batches_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id),
  constraint batches_check CHECK (((ended_at IS NOT NULL) = (status = ANY (ARRAY['failed'::text, 'completed'::text, 'expired'::text, 'cancelled'::text])))),
  constraint batches_keep_s_check CHECK ((keep_s > 0)),
  constraint batches_status_check CHECK ((status = ANY (ARRAY['validating'::text, 'failed'::text, 'in_progress'::text, 'finalizing'::text, 'completed'::text, 'expired'::text, 'cancelling'::text, 'cancelled'::text])))
);
CREATE INDEX batches_by_end ON batches USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX batches_unfinished ON batches USING btree (account_id) WHERE (ended_at IS NULL);

create table billing_details (
  account_id text not null,
  company text not null default ''::text,
  address text not null default ''::text,
  postal_code text not null default ''::text,
  city text not null default ''::text,
  country text not null default ''::text,
  tax_id text not null default ''::text,
  email text not null default ''::text,
  updated_at timestamptz not null,
  constraint billing_details_pkey PRIMARY KEY (account_id),
  constraint billing_details_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint billing_details_address_check CHECK ((length(address) <= 400)),
  constraint billing_details_city_check CHECK ((length(city) <= 100)),
  constraint billing_details_company_check CHECK ((length(company) <= 200)),
  constraint billing_details_country_check CHECK ((country ~ '^([A-Z]{2})?$'::text)),
  constraint billing_details_email_check CHECK ((length(email) <= 254)),
  constraint billing_details_postal_code_check CHECK ((length(postal_code) <= 20)),
  constraint billing_details_tax_id_check CHECK ((length(tax_id) <= 40))
);

create table book_budget_marks (
  budget_id text not null,
  since bigint not null,
  spent bigint not null,
  constraint book_budget_marks_pkey PRIMARY KEY (budget_id),
  constraint book_budget_marks_budget_id_fkey FOREIGN KEY (budget_id) REFERENCES account_budgets(id) ON DELETE CASCADE
);

create table book_checks (
  started_at timestamptz not null,
  ended_at timestamptz not null,
  is_full boolean not null,
  accounts bigint not null,
  entries bigint not null,
  open_holds bigint not null,
  difference text not null,
  findings jsonb not null,
  constraint book_checks_pkey PRIMARY KEY (started_at)
);

create table book_key_marks (
  key_id text not null,
  month date not null,
  spent bigint not null,
  constraint book_key_marks_pkey PRIMARY KEY (key_id)
);

create table book_marks (
  account_id text not null,
  number bigint not null,
  available bigint not null,
  held bigint not null,
  constraint book_marks_pkey PRIMARY KEY (account_id)
);

create table budgets (
  key_id text not null,
  account_id text not null,
  limit_month bigint,
  month date not null,
  spent bigint not null default 0,
  held bigint not null default 0,
  shares text,
  limited_month date,
  limited_spent bigint not null default 0,
  limited_held bigint not null default 0,
  exposed bigint not null default 0,
  project_id text,
  member_id text,
  constraint budgets_pkey PRIMARY KEY (key_id),
  constraint budgets_key_id_account_id_fkey FOREIGN KEY (key_id, account_id) REFERENCES api_keys(id, account_id),
  constraint budgets_shares_fkey FOREIGN KEY (shares) REFERENCES budgets(key_id),
  constraint budgets_are_sound CHECK (is_sound(budgets.*))
) with (fillfactor=50);
CREATE INDEX budgets_by_project ON budgets USING btree (account_id, COALESCE(project_id, 'default'::text));

create table call_prices (
  id text not null,
  pricing jsonb not null,
  first_used_at timestamptz not null,
  constraint call_prices_pkey PRIMARY KEY (id),
  constraint call_prices_id_check CHECK ((length(id) = 22))
);

create table callers_version (
  only_row boolean not null default true,
  version bigint not null default 0,
  constraint callers_version_pkey PRIMARY KEY (only_row),
  constraint callers_version_only_row_check CHECK (only_row)
);

create table chat_calls (
  account_id text not null,
  id text not null,
  key_id text not null,
  model text not null,
  style text not null,
  stream boolean not null,
  status integer not null,
  error_type text,
  finish text,
  attempts jsonb not null,
  input_tokens integer not null,
  cached_input_tokens integer not null,
  cache_write_tokens integer not null,
  output_tokens integer not null,
  reasoning_tokens integer not null,
  counted_here boolean not null,
  cost bigint not null,
  currency text not null,
  first_content_ms integer,
  total_ms integer not null,
  created_at timestamptz not null,
  upstream_cost bigint,
  cache_write_1h_tokens integer,
  tools jsonb,
  end_user text,
  metadata jsonb,
  price_id text,
  error_message text,
  recorded_at timestamptz,
  constraint chat_calls_pkey PRIMARY KEY (account_id, id),
  constraint chat_calls_cache_write_1h_tokens_check CHECK ((cache_write_1h_tokens >= 0)),
  constraint chat_calls_cache_write_tokens_check CHECK ((cache_write_tokens >= 0)),
  constraint chat_calls_cached_input_tokens_check CHECK ((cached_input_tokens >= 0)),
  constraint chat_calls_cost_check CHECK ((cost >= 0)),
  constraint chat_calls_input_tokens_check CHECK ((input_tokens >= 0)),
  constraint chat_calls_output_tokens_check CHECK ((output_tokens >= 0)),
  constraint chat_calls_reasoning_tokens_check CHECK ((reasoning_tokens >= 0)),
  constraint chat_calls_style_check CHECK ((style ~ '^[a-z][a-z0-9_]{0,31}$'::text))
);
CREATE INDEX chat_calls_by_time ON chat_calls USING btree (created_at);
CREATE INDEX chat_calls_failed ON chat_calls USING btree (account_id, id) WHERE (status >= 400);
CREATE INDEX chat_calls_failed_by_time ON chat_calls USING btree (created_at, status, error_type) WHERE (status >= 400);
CREATE INDEX chat_calls_failed_of_words ON chat_calls USING gin (((call_words(account_id, end_user, metadata, error_type, status) || message_words(account_id, error_message)))) WITH (fastupdate=off) WHERE (error_message IS NOT NULL);
CREATE INDEX chat_calls_gone_wrong ON chat_calls USING btree (created_at) WHERE ((status >= 500) OR (jsonb_array_length(attempts) > 1));
CREATE INDEX chat_calls_of_words ON chat_calls USING gin (call_words(account_id, end_user, metadata, error_type, status)) WITH (fastupdate=off) WHERE ((end_user IS NOT NULL) OR (metadata IS NOT NULL) OR (status >= 400));
CREATE INDEX chat_calls_recorded_late ON chat_calls USING btree (recorded_at) WHERE (recorded_at IS NOT NULL);

create table chat_contents (
  account_id text not null,
  id text not null,
  api_key_id text not null,
  key_id text,
  content bytea not null,
  size_bytes integer not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  constraint chat_contents_pkey PRIMARY KEY (account_id, id),
  constraint chat_contents_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint chat_contents_size_bytes_check CHECK ((size_bytes >= 0))
);
CREATE INDEX chat_contents_by_age ON chat_contents USING btree (created_at);
CREATE INDEX chat_contents_by_end ON chat_contents USING btree (expires_at);
CREATE INDEX chat_contents_by_key ON chat_contents USING btree (key_id);

create table conversation_items (
  account_id text not null,
  conversation_id text not null,
  place bigint not null,
  id text not null,
  key_id text,
  content bytea not null,
  json_bytes integer not null,
  constraint conversation_items_account_id_conversation_id_id_key UNIQUE (account_id, conversation_id, id),
  constraint conversation_items_pkey PRIMARY KEY (account_id, conversation_id, place),
  constraint conversation_items_account_id_conversation_id_fkey FOREIGN KEY (account_id, conversation_id) REFERENCES conversations(account_id, id) ON DELETE CASCADE,
  constraint conversation_items_json_bytes_check CHECK ((json_bytes >= 0))
);
CREATE INDEX conversation_items_by_key ON conversation_items USING btree (key_id);

create table conversations (
  account_id text not null,
  id text not null,
  key_id text,
  content bytea not null,
  items integer not null default 0,
  size_bytes bigint not null default 0,
  json_bytes bigint not null default 0,
  next_place bigint not null default 0,
  turn text,
  turn_until timestamptz,
  created_at timestamptz not null,
  used_at timestamptz not null,
  expires_at timestamptz not null,
  constraint conversations_pkey PRIMARY KEY (account_id, id),
  constraint conversations_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint conversations_check CHECK (((turn IS NULL) = (turn_until IS NULL))),
  constraint conversations_items_check CHECK ((items >= 0)),
  constraint conversations_json_bytes_check CHECK ((json_bytes >= 0)),
  constraint conversations_size_bytes_check CHECK ((size_bytes >= 0))
);
CREATE INDEX conversations_by_end ON conversations USING btree (expires_at);
CREATE INDEX conversations_by_key ON conversations USING btree (key_id);
CREATE INDEX conversations_in_turn ON conversations USING btree (account_id, id) WHERE (turn IS NOT NULL);

create table deliveries (
  account_id text not null,
  id text not null,
  task_id text,
  event text not null,
  url text not null,
  body text not null,
  lane text not null,
  host text not null,
  state text not null default 'waiting'::text,
  attempts integer not null default 0,
  failures integer not null default 0,
  by_hand boolean not null default false,
  jobs integer not null default 1,
  next_at timestamptz,
  created_at timestamptz not null,
  delivered_at timestamptz,
  ended_at timestamptz,
  traceparent text,
  endpoint_id text,
  event_id text,
  replayed boolean not null default false,
  constraint deliveries_pkey PRIMARY KEY (account_id, id),
  constraint deliveries_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint deliveries_attempts_check CHECK ((attempts >= 0)),
  constraint deliveries_check CHECK (((failures >= 0) AND (failures <= attempts))),
  constraint deliveries_check1 CHECK (((state = 'waiting'::text) = (next_at IS NOT NULL))),
  constraint deliveries_check2 CHECK (((state <> 'delivered'::text) OR (delivered_at IS NOT NULL))),
  constraint deliveries_check3 CHECK (((state = 'waiting'::text) OR (ended_at IS NOT NULL))),
  constraint deliveries_event_check CHECK (((event ~ '^[a-z_]+\.[a-z_]+$'::text) AND (length(event) <= 60))),
  constraint deliveries_jobs_check CHECK ((jobs >= 1)),
  constraint deliveries_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'delivered'::text, 'dropped'::text])))
);
CREATE INDEX deliveries_by_id ON deliveries USING btree (id);
CREATE INDEX deliveries_dropped ON deliveries USING btree (account_id, id) WHERE (state = 'dropped'::text);
CREATE INDEX deliveries_dropped_of_all ON deliveries USING btree (id) WHERE (state = 'dropped'::text);
CREATE INDEX deliveries_ended ON deliveries USING btree (ended_at) WHERE (state <> 'waiting'::text);
CREATE INDEX deliveries_of_endpoint ON deliveries USING btree (account_id, endpoint_id, id) WHERE (endpoint_id IS NOT NULL);
CREATE INDEX deliveries_waiting ON deliveries USING btree (next_at) WHERE (state = 'waiting'::text);
CREATE UNIQUE INDEX deliveries_of_event ON deliveries USING btree (account_id, event_id, endpoint_id) WHERE (event_id IS NOT NULL);
CREATE UNIQUE INDEX deliveries_of_task ON deliveries USING btree (account_id, task_id) WHERE (task_id IS NOT NULL);

create table delivery_attempts (
  account_id text not null,
  delivery_id text not null,
  number integer not null,
  started_at timestamptz not null,
  ended_at timestamptz not null,
  duration_ms integer not null,
  status integer,
  error text,
  answer text,
  constraint delivery_attempts_pkey PRIMARY KEY (account_id, delivery_id, number),
  constraint delivery_attempts_account_id_delivery_id_fkey FOREIGN KEY (account_id, delivery_id) REFERENCES deliveries(account_id, id) ON DELETE CASCADE,
  constraint delivery_attempts_check CHECK (((status IS NOT NULL) OR (error IS NOT NULL))),
  constraint delivery_attempts_duration_ms_check CHECK ((duration_ms >= 0)),
  constraint delivery_attempts_number_check CHECK ((number >= 1))
);

create table delivery_slots (
  account_id text not null,
  delivery_id text not null,
  endpoint text not null,
  host text not null,
  claim text,
  taken_at timestamptz not null,
  expires_at timestamptz,
  constraint delivery_slots_pkey PRIMARY KEY (account_id, delivery_id)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000);
CREATE INDEX delivery_slots_by_endpoint ON delivery_slots USING btree (endpoint);
CREATE INDEX delivery_slots_by_host ON delivery_slots USING btree (host, account_id);

create table device_logins (
  device_hash bytea not null,
  user_hash bytea not null,
  client text not null,
  device text not null,
  scopes text[],
  address text not null,
  network text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  interval_s integer not null,
  polled_at timestamptz,
  decision text,
  user_id text,
  account_id text,
  key_name text,
  limit_month bigint,
  key_expires_at timestamptz,
  constraint device_logins_pkey PRIMARY KEY (device_hash),
  constraint device_logins_user_hash_key UNIQUE (user_hash),
  constraint device_logins_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint device_logins_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth."user"(id) ON DELETE CASCADE,
  constraint device_logins_check CHECK (((decision IS DISTINCT FROM 'approved'::text) OR ((user_id IS NOT NULL) AND (account_id IS NOT NULL) AND (key_name IS NOT NULL)))),
  constraint device_logins_decision_check CHECK ((decision = ANY (ARRAY['approved'::text, 'denied'::text]))),
  constraint device_logins_device_hash_check CHECK ((length(device_hash) = 32)),
  constraint device_logins_interval_s_check CHECK ((interval_s > 0)),
  constraint device_logins_limit_month_check CHECK ((limit_month >= 0)),
  constraint device_logins_user_hash_check CHECK ((length(user_hash) = 32))
);
CREATE INDEX device_logins_by_expiry ON device_logins USING btree (expires_at);
CREATE INDEX device_logins_by_network ON device_logins USING btree (network);

create table disks (
  host text not null,
  path text not null,
  free_bytes bigint not null,
  size_bytes bigint not null,
  seen_at timestamptz not null,
  constraint disks_pkey PRIMARY KEY (host, path),
  constraint disks_free_bytes_check CHECK ((free_bytes >= 0)),
  constraint disks_size_bytes_check CHECK ((size_bytes > 0))
);

create table email_claims (
  user_id text not null,
  hash bytea not null,
  email text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  constraint email_claims_hash_key UNIQUE (hash),
  constraint email_claims_pkey PRIMARY KEY (user_id),
  constraint email_claims_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth."user"(id) ON DELETE CASCADE,
  constraint email_claims_hash_check CHECK ((length(hash) = 32))
);

create table feedback (
  account_id text not null,
  id text not null,
  reference_id text not null,
  name text not null,
  end_user text not null,
  score double precision not null,
  comment text,
  tags text[] not null,
  metadata jsonb not null,
  key_id text,
  referred_at timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint feedback_account_id_reference_id_name_end_user_key UNIQUE (account_id, reference_id, name, end_user),
  constraint feedback_pkey PRIMARY KEY (account_id, id),
  constraint feedback_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint feedback_comment_check CHECK ((length(comment) <= 4000)),
  constraint feedback_end_user_check CHECK ((length(end_user) <= 256)),
  constraint feedback_name_check CHECK (((length(name) >= 1) AND (length(name) <= 64))),
  constraint feedback_score_check CHECK (((score >= ('-1'::integer)::double precision) AND (score <= (1)::double precision)))
);
CREATE INDEX feedback_by_time ON feedback USING btree (referred_at);
CREATE INDEX feedback_of_account_by_time ON feedback USING btree (account_id, referred_at);

create table files (
  account_id text not null,
  id text not null,
  key_id text not null,
  task_id text,
  filename text not null,
  purpose text not null,
  storage_key text not null,
  kind text not null,
  content_type text not null,
  size_bytes bigint not null,
  width integer,
  height integer,
  duration_ms integer,
  ready boolean not null default false,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  name text,
  sha256 text,
  constraint files_pkey PRIMARY KEY (account_id, id),
  constraint files_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint files_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id),
  constraint files_kind_check CHECK ((kind = ANY (ARRAY['image'::text, 'video'::text, 'audio'::text, 'document'::text]))),
  constraint files_size_bytes_check CHECK ((size_bytes > 0))
);
CREATE INDEX files_by_expiry ON files USING btree (expires_at);
CREATE INDEX files_of_tasks ON files USING btree (account_id, task_id) WHERE (task_id IS NOT NULL);
CREATE UNIQUE INDEX files_by_name ON files USING btree (account_id, name) WHERE (name IS NOT NULL);

create table full_routes (
  route text not null,
  provider text not null,
  refusals integer not null,
  refused_at timestamptz not null,
  retry_at timestamptz not null,
  is_firm boolean not null,
  constraint full_routes_pkey PRIMARY KEY (route)
);

create table idempotency_keys (
  account_id text not null,
  key text not null,
  body_hash bytea not null,
  task_id text not null,
  created_at timestamptz not null,
  constraint idempotency_keys_pkey PRIMARY KEY (account_id, key),
  constraint idempotency_keys_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint idempotency_keys_key_check CHECK (((length(key) >= 1) AND (length(key) <= 255)))
);
CREATE INDEX idempotency_keys_by_time ON idempotency_keys USING btree (created_at);

create table invoice_mails (
  number text not null,
  mailed_at timestamptz not null,
  constraint invoice_mails_pkey PRIMARY KEY (number),
  constraint invoice_mails_number_fkey FOREIGN KEY (number) REFERENCES invoices(number)
);

create table invoice_months (
  month date not null,
  done_at timestamptz not null,
  constraint invoice_months_pkey PRIMARY KEY (month)
);

create table invoice_series (
  series text not null,
  year integer not null,
  last bigint not null default 0,
  constraint invoice_series_pkey PRIMARY KEY (series, year),
  constraint invoice_series_series_check CHECK ((series ~ '^[A-Z0-9]{1,10}$'::text))
);

create table invoices (
  account_id text not null,
  month date not null,
  series text not null,
  year integer not null,
  serial bigint not null,
  number text not null,
  currency text not null,
  total bigint not null,
  snapshot jsonb not null,
  issued_at timestamptz not null,
  sequence integer not null,
  through bigint not null,
  constraint invoices_number_key UNIQUE (number),
  constraint invoices_pkey PRIMARY KEY (account_id, month, sequence),
  constraint invoices_series_year_serial_key UNIQUE (series, year, serial),
  constraint invoices_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint invoices_month_check CHECK ((month = date_trunc('month'::text, (month)::timestamp without time zone))),
  constraint invoices_sequence_check CHECK ((sequence >= 1)),
  constraint invoices_serial_check CHECK ((serial >= 1))
);
CREATE TRIGGER invoices_immutable BEFORE DELETE OR UPDATE ON invoices
  FOR EACH ROW EXECUTE FUNCTION refuse_invoice_change();
CREATE TRIGGER invoices_not_truncated BEFORE TRUNCATE ON invoices
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_invoice_change();

create table leases (
  account_id text not null,
  resource text not null,
  node_id text not null,
  amount bigint not null,
  in_use bigint not null default 0,
  ends_at timestamptz not null,
  frees_at timestamptz,
  constraint leases_pkey PRIMARY KEY (account_id, resource, node_id),
  constraint leases_check CHECK (((in_use >= 0) AND (amount >= in_use)))
) with (fillfactor=50);

create table ledger_closed_keys (
  key_id text not null,
  month date not null,
  spent bigint not null,
  constraint ledger_closed_keys_pkey PRIMARY KEY (key_id)
);

create table ledger_closed_months (
  account_id text not null,
  month date not null,
  charged bigint not null,
  constraint ledger_closed_months_pkey PRIMARY KEY (account_id, month)
);

create table ledger_entries (
  account_id text not null,
  number bigint not null,
  type text not null,
  ref text not null,
  event text not null,
  currency text not null,
  available bigint not null,
  held bigint not null,
  topup_source bigint not null default 0,
  revenue bigint not null default 0,
  loss bigint not null default 0,
  adjust bigint not null default 0,
  available_after bigint not null,
  held_after bigint not null,
  key_id text,
  model text,
  kind text,
  units jsonb,
  reason text,
  month date not null,
  created_at timestamptz not null,
  provider text,
  route text,
  upstream_cost bigint not null default 0,
  upstream_owed bigint not null default 0,
  upstream_basis text,
  upstream_base bigint,
  base_currency text,
  upstream_unknown smallint not null default 0,
  project_id text,
  constraint ledger_entries_pkey PRIMARY KEY (account_id, number),
  constraint ledger_entries_ref_account_id_event_key UNIQUE (ref, account_id, event),
  constraint ledger_entries_are_sound CHECK (is_sound(ledger_entries.*))
);
CREATE INDEX ledger_entries_charges ON ledger_entries USING btree (account_id, created_at) WHERE (type = 'settle'::text);
CREATE INDEX ledger_entries_few ON ledger_entries USING btree (account_id, type, number) WHERE (type <> ALL (ARRAY['hold'::text, 'settle'::text]));
CREATE INDEX ledger_entries_late ON ledger_entries USING btree (account_id, ref) WHERE (event = 'late'::text);
CREATE TRIGGER ledger_entries_immutable BEFORE DELETE OR UPDATE ON ledger_entries
  FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_entries_not_truncated BEFORE TRUNCATE ON ledger_entries
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

create table ledger_openings (
  account_id text not null,
  month date not null,
  number bigint not null,
  available bigint not null,
  held bigint not null,
  topup_source bigint not null,
  revenue bigint not null,
  loss bigint not null,
  adjust bigint not null,
  upstream_cost bigint not null,
  upstream_owed bigint not null,
  constraint ledger_openings_pkey PRIMARY KEY (account_id),
  constraint ledger_openings_available_check CHECK ((available >= 0)),
  constraint ledger_openings_check CHECK (((((((available + held) + topup_source) + revenue) + loss) + adjust) = 0)),
  constraint ledger_openings_check1 CHECK (((upstream_cost + upstream_owed) = 0)),
  constraint ledger_openings_held_check CHECK ((held >= 0)),
  constraint ledger_openings_number_check CHECK ((number >= 1))
);

create table lessees (
  node_id text not null,
  seen_at timestamptz not null,
  has_stopped boolean not null default false,
  constraint lessees_pkey PRIMARY KEY (node_id)
) with (fillfactor=10);

create table login_links (
  hash bytea not null,
  user_id text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz,
  by_mail boolean not null default false,
  constraint login_links_pkey PRIMARY KEY (hash),
  constraint login_links_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth."user"(id) ON DELETE CASCADE,
  constraint login_links_hash_check CHECK ((length(hash) = 32))
);

create table margin_sums (
  account_id text not null,
  month date not null,
  step text not null,
  start date not null,
  model text not null,
  provider text not null,
  route text not null,
  base_currency text not null,
  runs bigint not null,
  revenue bigint not null,
  upstream_cost bigint not null,
  base bigint not null,
  unknown bigint not null,
  constraint margin_sums_pkey PRIMARY KEY (account_id, month, step, start, model, provider, route, base_currency),
  constraint margin_sums_step_check CHECK ((step = ANY (ARRAY['month'::text, 'day'::text])))
);
CREATE INDEX margin_sums_by_month ON margin_sums USING btree (month, step);

create table migrations (
  number integer not null,
  name text not null,
  checksum text not null,
  applied_at timestamptz not null default now(),
  constraint migrations_pkey PRIMARY KEY (number)
);

create table model_checks (
  id smallint not null,
  due_at timestamptz not null,
  checked_at timestamptz,
  result jsonb,
  constraint model_checks_pkey PRIMARY KEY (id),
  constraint model_checks_check CHECK (((checked_at IS NULL) = (result IS NULL))),
  constraint model_checks_id_check CHECK ((id = 1))
);

create table model_hours (
  model text not null,
  start timestamptz not null,
  calls integer not null,
  failed integer not null,
  first_p50_ms integer,
  total_p50_ms integer,
  constraint model_hours_pkey PRIMARY KEY (model, start),
  constraint model_hours_calls_check CHECK ((calls > 0)),
  constraint model_hours_check CHECK (((failed >= 0) AND (failed <= calls))),
  constraint model_hours_first_p50_ms_check CHECK ((first_p50_ms >= 0)),
  constraint model_hours_total_p50_ms_check CHECK ((total_p50_ms >= 0))
);
CREATE INDEX model_hours_by_start ON model_hours USING btree (start);

create table model_overrides (
  model text not null,
  is_off boolean not null default false,
  route_order text[] not null default '{}'::text[],
  drained text[] not null default '{}'::text[],
  updated_at timestamptz not null,
  constraint model_overrides_pkey PRIMARY KEY (model)
);

create table nodes (
  id text not null,
  host text not null,
  pid integer not null,
  role text not null,
  version text not null,
  started_at timestamptz not null,
  seen_at timestamptz not null,
  running jsonb not null default '{}'::jsonb,
  is_paused boolean not null default false,
  constraint nodes_pkey PRIMARY KEY (id)
);

create table open_holds (
  account_id text not null,
  ref text not null,
  key_id text not null,
  amount bigint not null,
  model text not null,
  kind text not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  node_id text,
  exposed bigint not null default 0,
  project_id text,
  budget_ids text[],
  constraint open_holds_pkey PRIMARY KEY (account_id, ref),
  constraint open_holds_are_sound CHECK (hold_is_sound(open_holds.*))
);
CREATE INDEX open_holds_expiring ON open_holds USING btree (expires_at) WHERE (expires_at IS NOT NULL);

create table passkeys (
  id text not null,
  user_id text not null,
  credential_id bytea not null,
  public_key bytea not null,
  counter bigint not null,
  host text not null,
  transports text[] not null,
  is_synced boolean not null,
  name text not null,
  created_at timestamptz not null,
  used_at timestamptz,
  constraint passkeys_credential_id_key UNIQUE (credential_id),
  constraint passkeys_pkey PRIMARY KEY (id),
  constraint passkeys_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth."user"(id) ON DELETE CASCADE,
  constraint passkeys_counter_check CHECK ((counter >= 0)),
  constraint passkeys_credential_id_check CHECK (((length(credential_id) >= 1) AND (length(credential_id) <= 1023))),
  constraint passkeys_host_check CHECK (((length(host) >= 1) AND (length(host) <= 253))),
  constraint passkeys_name_check CHECK (((length(name) >= 1) AND (length(name) <= 60))),
  constraint passkeys_public_key_check CHECK (((length(public_key) >= 1) AND (length(public_key) <= 2000))),
  constraint passkeys_transports_check CHECK ((cardinality(transports) <= 10))
);
CREATE INDEX passkeys_of_user ON passkeys USING btree (user_id);

create table playground_contents (
  account_id text not null,
  user_id text not null,
  id text not null,
  conversation_id text not null,
  key_id text,
  content bytea not null,
  size_bytes integer not null,
  created_at timestamptz not null,
  constraint playground_contents_pkey PRIMARY KEY (account_id, user_id, id),
  constraint playground_contents_account_id_user_id_conversation_id_fkey FOREIGN KEY (account_id, user_id, conversation_id) REFERENCES playground_conversations(account_id, user_id, id) ON DELETE CASCADE,
  constraint playground_contents_size_bytes_check CHECK ((size_bytes >= 0))
);
CREATE INDEX playground_contents_by_conversation ON playground_contents USING btree (account_id, user_id, conversation_id);
CREATE INDEX playground_contents_by_key ON playground_contents USING btree (key_id);

create table playground_conversations (
  account_id text not null,
  user_id text not null,
  id text not null,
  version integer not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  expires_at timestamptz not null,
  deleted_at timestamptz,
  constraint playground_conversations_pkey PRIMARY KEY (account_id, user_id, id),
  constraint playground_conversations_account_id_user_id_fkey FOREIGN KEY (account_id, user_id) REFERENCES playground_owners(account_id, user_id) ON DELETE CASCADE,
  constraint playground_conversations_id_check CHECK ((id ~ '^[0-9a-f]{24}$'::text)),
  constraint playground_conversations_version_check CHECK ((version >= 0))
);
CREATE INDEX playground_conversations_by_change ON playground_conversations USING btree (updated_at) WHERE (deleted_at IS NULL);
CREATE INDEX playground_conversations_by_end ON playground_conversations USING btree (expires_at);
CREATE INDEX playground_conversations_by_version ON playground_conversations USING btree (account_id, user_id, version);

create table playground_owners (
  account_id text not null,
  user_id text not null,
  epoch text not null,
  is_on boolean not null,
  version integer not null default 0,
  created_at timestamptz not null,
  constraint playground_owners_pkey PRIMARY KEY (account_id, user_id),
  constraint playground_owners_user_id_account_id_fkey FOREIGN KEY (user_id, account_id) REFERENCES auth.member("userId", "organizationId") ON DELETE CASCADE,
  constraint playground_owners_version_check CHECK ((version >= 0))
);

create table projects (
  id text not null,
  account_id text not null,
  name text not null,
  created_at timestamptz not null,
  archived_at timestamptz,
  constraint projects_pkey PRIMARY KEY (id),
  constraint projects_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint projects_id_check CHECK ((id <> 'default'::text)),
  constraint projects_name_check CHECK (((length(name) >= 1) AND (length(name) <= 100)))
);
CREATE UNIQUE INDEX projects_by_name ON projects USING btree (account_id, lower(name)) WHERE (archived_at IS NULL);

create table prompt_versions (
  prompt_id text not null,
  version integer not null,
  body text not null,
  user_id text,
  created_at timestamptz not null,
  constraint prompt_versions_pkey PRIMARY KEY (prompt_id, version),
  constraint prompt_versions_prompt_id_fkey FOREIGN KEY (prompt_id) REFERENCES prompts(id) ON DELETE CASCADE,
  constraint prompt_versions_body_check CHECK ((length(body) <= 200000)),
  constraint prompt_versions_version_check CHECK ((version >= 1))
);

create table prompts (
  id text not null,
  account_id text not null,
  name text not null,
  version integer not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint prompts_account_id_name_key UNIQUE (account_id, name),
  constraint prompts_pkey PRIMARY KEY (id),
  constraint prompts_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint prompts_name_check CHECK (((length(name) >= 1) AND (length(name) <= 80))),
  constraint prompts_version_check CHECK ((version >= 1))
);

create table refusals (
  account_id text not null,
  start timestamptz not null,
  reason text not null,
  key_id text not null,
  project_id text not null,
  budget_id text not null,
  model text not null,
  count bigint not null,
  constraint refusals_pkey PRIMARY KEY (account_id, start, reason, key_id, project_id, budget_id, model),
  constraint refusals_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint refusals_count_check CHECK ((count > 0)),
  constraint refusals_reason_check CHECK (((length(reason) >= 1) AND (length(reason) <= 40)))
);
CREATE INDEX refusals_by_start ON refusals USING btree (start);
CREATE INDEX refusals_of_budgets ON refusals USING btree (account_id, budget_id, start) WHERE (budget_id <> ''::text);

create table route_health (
  route text not null,
  cause text not null,
  openings integer not null,
  opened_at timestamptz not null,
  retry_at timestamptz not null,
  probing_until timestamptz,
  account_id text not null default ''::text,
  constraint route_health_pkey PRIMARY KEY (route, account_id),
  constraint route_health_cause_check CHECK ((cause = ANY (ARRAY['upstream_error'::text, 'timeout'::text]))),
  constraint route_health_openings_check CHECK ((openings >= 1))
);

create table saved_views (
  account_id text not null,
  user_id text not null,
  name text not null,
  search text not null,
  created_at timestamptz not null,
  constraint saved_views_pkey PRIMARY KEY (account_id, user_id, name),
  constraint saved_views_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint saved_views_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth."user"(id) ON DELETE CASCADE,
  constraint saved_views_name_check CHECK (((length(name) >= 1) AND (length(name) <= 60))),
  constraint saved_views_search_check CHECK ((length(search) <= 2000))
);

create table scheduled_backups (
  id text not null,
  place text not null,
  host text not null,
  started_at timestamptz not null,
  ended_at timestamptz,
  state text not null,
  size_bytes bigint,
  error text,
  constraint scheduled_backups_pkey PRIMARY KEY (id),
  constraint scheduled_backups_check CHECK (((state = 'running'::text) = (ended_at IS NULL))),
  constraint scheduled_backups_check1 CHECK (((state = 'failed'::text) = (error IS NOT NULL))),
  constraint scheduled_backups_check2 CHECK (((state <> ALL (ARRAY['done'::text, 'removed'::text])) OR (size_bytes IS NOT NULL))),
  constraint scheduled_backups_size_bytes_check CHECK ((size_bytes >= 0)),
  constraint scheduled_backups_state_check CHECK ((state = ANY (ARRAY['running'::text, 'done'::text, 'failed'::text, 'removed'::text])))
);
CREATE INDEX scheduled_backups_by_time ON scheduled_backups USING btree (started_at);

create table settings (
  name text not null,
  value text not null,
  constraint settings_pkey PRIMARY KEY (name)
);

create table sign_in_tries (
  name bytea not null,
  count integer not null,
  last_at timestamptz not null,
  constraint sign_in_tries_pkey PRIMARY KEY (name),
  constraint sign_in_tries_count_check CHECK ((count > 0))
);
CREATE INDEX sign_in_tries_by_time ON sign_in_tries USING btree (last_at);

create table slow_endpoints (
  endpoint text not null,
  since timestamptz not null,
  constraint slow_endpoints_pkey PRIMARY KEY (endpoint)
);
CREATE INDEX slow_endpoints_by_age ON slow_endpoints USING btree (since);

create table spend_mails (
  account_id text not null,
  user_id text not null,
  every text not null,
  grouped_by text not null,
  ends_at timestamptz not null,
  created_at timestamptz not null,
  constraint spend_mails_pkey PRIMARY KEY (account_id, user_id),
  constraint spend_mails_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint spend_mails_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth."user"(id) ON DELETE CASCADE,
  constraint spend_mails_every_check CHECK ((every = ANY (ARRAY['day'::text, 'week'::text, 'month'::text]))),
  constraint spend_mails_grouped_by_check CHECK (((length(grouped_by) >= 1) AND (length(grouped_by) <= 80)))
);
CREATE INDEX spend_mails_due ON spend_mails USING btree (ends_at, account_id, user_id);

create table stored_responses (
  account_id text not null,
  id text not null,
  previous_id text,
  item_ids text[] not null,
  key_id text,
  content bytea not null,
  size_bytes integer not null,
  json_bytes integer not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  constraint stored_responses_pkey PRIMARY KEY (account_id, id),
  constraint stored_responses_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint stored_responses_json_bytes_check CHECK ((json_bytes >= 0)),
  constraint stored_responses_size_bytes_check CHECK ((size_bytes >= 0))
);
CREATE INDEX stored_responses_by_end ON stored_responses USING btree (expires_at);
CREATE INDEX stored_responses_by_key ON stored_responses USING btree (key_id);
CREATE INDEX stored_responses_of_items ON stored_responses USING gin (item_ids) WITH (fastupdate=off);

create table tasks (
  account_id text not null,
  id text not null,
  key_id text not null,
  model text not null,
  kind text not null,
  input text not null,
  metadata text not null,
  webhook_url text,
  currency text not null,
  pricing jsonb not null,
  held_units jsonb not null,
  estimate bigint not null,
  status text not null default 'queued'::text,
  cost bigint not null default 0,
  error_type text,
  error_message text,
  counts_as_failure boolean not null default false,
  body text,
  files jsonb not null default '[]'::jsonb,
  files_removed_at timestamptz,
  created_at timestamptz not null,
  started_at timestamptz,
  completed_at timestamptz,
  deadline_at timestamptz not null,
  traceparent text,
  constraint tasks_pkey PRIMARY KEY (account_id, id),
  constraint tasks_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint tasks_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id),
  constraint tasks_check CHECK (((cost >= 0) AND (cost <= estimate))),
  constraint tasks_check1 CHECK (((status = ANY (ARRAY['succeeded'::text, 'failed'::text])) = (completed_at IS NOT NULL))),
  constraint tasks_check2 CHECK (((completed_at IS NULL) = (body IS NULL))),
  constraint tasks_check3 CHECK (((status = 'failed'::text) = (error_type IS NOT NULL))),
  constraint tasks_check4 CHECK (((status = 'succeeded'::text) OR (cost = 0))),
  constraint tasks_check5 CHECK (((status <> 'running'::text) OR (started_at IS NOT NULL))),
  constraint tasks_check6 CHECK (((status = 'failed'::text) OR (NOT counts_as_failure))),
  constraint tasks_error_type_check CHECK ((error_type = ANY (ARRAY['upstream_error'::text, 'timeout'::text, 'content_policy_violation'::text, 'invalid_request'::text, 'canceled'::text, 'internal_error'::text]))),
  constraint tasks_estimate_check CHECK ((estimate >= 0)),
  constraint tasks_kind_check CHECK ((kind = ANY (ARRAY['image'::text, 'video'::text, 'audio'::text]))),
  constraint tasks_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'running'::text, 'succeeded'::text, 'failed'::text])))
);
CREATE INDEX tasks_by_completion ON tasks USING btree (completed_at) WHERE (completed_at IS NOT NULL);
CREATE INDEX tasks_by_time ON tasks USING btree (created_at);
CREATE INDEX tasks_counted ON tasks USING btree (account_id, completed_at) WHERE counts_as_failure;
CREATE INDEX tasks_failed ON tasks USING btree (account_id, id) WHERE (error_type IS NOT NULL);
CREATE INDEX tasks_failed_of_words ON tasks USING gin (task_words(account_id, input, ((((error_type || ' '::text) || COALESCE(error_message, ''::text)) || ' '::text) || metadata))) WITH (fastupdate=off) WHERE (error_type IS NOT NULL);
CREATE INDEX tasks_of_key ON tasks USING btree (account_id, key_id, id) WHERE (completed_at IS NOT NULL);
CREATE INDEX tasks_of_model ON tasks USING btree (account_id, model, id) WHERE (completed_at IS NOT NULL);
CREATE INDEX tasks_of_pairs ON tasks USING gin (task_pairs(account_id, metadata)) WITH (fastupdate=off) WHERE (metadata <> '{}'::text);
CREATE INDEX tasks_of_tags ON tasks USING gin (task_tags(account_id, metadata)) WITH (fastupdate=off) WHERE (strpos(metadata, '"tags":"'::text) > 0);
CREATE INDEX tasks_of_words ON tasks USING gin (task_words(account_id, input, metadata)) WITH (fastupdate=off) WHERE (completed_at IS NOT NULL);
CREATE INDEX tasks_unfinished ON tasks USING btree (deadline_at) WHERE (completed_at IS NULL);
CREATE INDEX tasks_unfinished_of_account ON tasks USING btree (account_id, id) WHERE (completed_at IS NULL);
CREATE INDEX tasks_videos ON tasks USING btree (account_id, id) WHERE (kind = 'video'::text);
CREATE INDEX tasks_with_files ON tasks USING btree (completed_at) WHERE ((files_removed_at IS NULL) AND (files <> '[]'::jsonb));

create table test_call_files (
  test_call_id text not null,
  index integer not null,
  bytes bytea not null,
  constraint test_call_files_pkey PRIMARY KEY (test_call_id, index),
  constraint test_call_files_test_call_id_fkey FOREIGN KEY (test_call_id) REFERENCES test_calls(id) ON DELETE CASCADE
);

create table test_calls (
  id text not null,
  route text not null,
  currency text not null,
  begun_at timestamptz not null,
  over_at timestamptz not null,
  result jsonb,
  constraint test_calls_pkey PRIMARY KEY (id),
  constraint soon_over CHECK ((over_at >= begun_at))
);
CREATE UNIQUE INDEX test_calls_running ON test_calls USING btree (route) WHERE (result IS NULL);

create table throttled_deliveries (
  account_id text not null,
  delivery_id text not null,
  endpoint text not null,
  host text not null,
  retry boolean not null,
  since timestamptz not null,
  queue_for text not null,
  constraint throttled_deliveries_pkey PRIMARY KEY (account_id, delivery_id),
  constraint throttled_deliveries_queue_for_check CHECK ((queue_for = ANY (ARRAY['endpoint'::text, 'host'::text])))
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000);
CREATE INDEX throttled_deliveries_by_endpoint ON throttled_deliveries USING btree (endpoint, queue_for, retry, since);
CREATE INDEX throttled_deliveries_by_host ON throttled_deliveries USING btree (host, queue_for, account_id, retry, since);
CREATE TRIGGER throttled_deliveries_say_endpoint BEFORE INSERT OR UPDATE ON throttled_deliveries
  FOR EACH ROW EXECUTE FUNCTION say_endpoint();

create table throttled_tasks (
  account_id text not null,
  task_id text not null,
  route text not null,
  provider text not null,
  since timestamptz not null,
  give_up_at timestamptz not null,
  promoted_at timestamptz,
  constraint throttled_tasks_pkey PRIMARY KEY (account_id, task_id, route),
  constraint throttled_tasks_account_id_task_id_fkey FOREIGN KEY (account_id, task_id) REFERENCES tasks(account_id, id) ON DELETE CASCADE
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000);
CREATE INDEX throttled_tasks_by_end ON throttled_tasks USING btree (give_up_at);
CREATE INDEX throttled_tasks_promoted ON throttled_tasks USING btree (provider, account_id) WHERE (promoted_at IS NOT NULL);
CREATE INDEX throttled_tasks_waiting ON throttled_tasks USING btree (provider, account_id, since) WHERE (promoted_at IS NULL);

create table upload_parts (
  account_id text not null,
  session_id text not null,
  id text not null,
  start_bytes bigint,
  size_bytes bigint not null,
  sha256 text not null,
  storage_key text not null,
  created_at timestamptz not null,
  constraint upload_parts_pkey PRIMARY KEY (account_id, session_id, id),
  constraint upload_parts_account_id_session_id_fkey FOREIGN KEY (account_id, session_id) REFERENCES upload_sessions(account_id, id) ON DELETE CASCADE,
  constraint upload_parts_size_bytes_check CHECK ((size_bytes > 0))
);

create table upload_sessions (
  account_id text not null,
  id text not null,
  key_id text not null,
  kind text not null,
  filename text not null,
  name text,
  purpose text not null,
  size_bytes bigint,
  keep_s bigint not null,
  state text not null default 'pending'::text,
  received_bytes bigint not null default 0,
  parts_begun integer not null default 0,
  file_id text,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  constraint upload_sessions_pkey PRIMARY KEY (account_id, id),
  constraint upload_sessions_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint upload_sessions_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id),
  constraint upload_sessions_check CHECK (((state = 'completed'::text) = (file_id IS NOT NULL))),
  constraint upload_sessions_keep_s_check CHECK ((keep_s > 0)),
  constraint upload_sessions_kind_check CHECK ((kind = ANY (ARRAY['chunks'::text, 'parts'::text]))),
  constraint upload_sessions_parts_begun_check CHECK (((parts_begun >= 0) AND (parts_begun <= 10000))),
  constraint upload_sessions_received_bytes_check CHECK ((received_bytes >= 0)),
  constraint upload_sessions_size_bytes_check CHECK ((size_bytes > 0)),
  constraint upload_sessions_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'completed'::text, 'cancelled'::text])))
);
CREATE INDEX upload_sessions_by_expiry ON upload_sessions USING btree (expires_at);
CREATE INDEX upload_sessions_pending ON upload_sessions USING btree (account_id) WHERE (state = 'pending'::text);

create table usage_marks (
  account_id text not null,
  number bigint not null,
  margins bigint not null default 0,
  constraint usage_marks_pkey PRIMARY KEY (account_id)
);

create table usage_sums (
  account_id text not null,
  step text not null,
  start timestamptz not null,
  key_id text not null,
  model text not null,
  kind text not null,
  charges bigint not null,
  cost bigint not null,
  units jsonb not null,
  project_id text not null default 'default'::text,
  constraint usage_sums_pkey PRIMARY KEY (account_id, step, start, key_id, model, kind, project_id),
  constraint usage_sums_step_check CHECK ((step = ANY (ARRAY['hour'::text, 'day'::text])))
);

create table used_challenges (
  hash bytea not null,
  expires_at timestamptz not null,
  constraint used_challenges_pkey PRIMARY KEY (hash),
  constraint used_challenges_hash_check CHECK ((length(hash) = 32))
);
CREATE INDEX used_challenges_by_end ON used_challenges USING btree (expires_at);

create table webhook_endpoints (
  account_id text not null,
  id text not null,
  url text not null,
  lane text not null,
  host text not null,
  description text not null default ''::text,
  events text[] not null,
  models text[],
  key_ids text[],
  pairs text[],
  enabled boolean not null default true,
  disabled_reason text,
  disabled_at timestamptz,
  secret text not null,
  secret_before text,
  secret_rotated_at timestamptz,
  failing_since timestamptz,
  last_failed_at timestamptz,
  last_delivered_at timestamptz,
  created_at timestamptz not null,
  changed_at timestamptz not null,
  project_ids text[],
  constraint webhook_endpoints_pkey PRIMARY KEY (account_id, id),
  constraint webhook_endpoints_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint webhook_endpoints_check CHECK (((enabled = (disabled_reason IS NULL)) AND (enabled = (disabled_at IS NULL)))),
  constraint webhook_endpoints_check1 CHECK (((secret_before IS NULL) = (secret_rotated_at IS NULL))),
  constraint webhook_endpoints_check2 CHECK (((failing_since IS NULL) OR (last_failed_at IS NOT NULL))),
  constraint webhook_endpoints_description_check CHECK ((length(description) <= 200)),
  constraint webhook_endpoints_disabled_reason_check CHECK ((disabled_reason = ANY (ARRAY['manual'::text, 'failing'::text, 'gone'::text]))),
  constraint webhook_endpoints_events_check CHECK (((cardinality(events) >= 1) AND (cardinality(events) <= 50))),
  constraint webhook_endpoints_key_ids_check CHECK (((cardinality(key_ids) >= 1) AND (cardinality(key_ids) <= 50))),
  constraint webhook_endpoints_models_check CHECK (((cardinality(models) >= 1) AND (cardinality(models) <= 50))),
  constraint webhook_endpoints_pairs_check CHECK (((cardinality(pairs) >= 1) AND (cardinality(pairs) <= 16))),
  constraint webhook_endpoints_project_ids_check CHECK (((cardinality(project_ids) >= 1) AND (cardinality(project_ids) <= 50))),
  constraint webhook_endpoints_secret_before_check CHECK ((secret_before ~~ 'whsec\_%'::text)),
  constraint webhook_endpoints_secret_check CHECK ((secret ~~ 'whsec\_%'::text)),
  constraint webhook_endpoints_url_check CHECK (((length(url) >= 1) AND (length(url) <= 2048)))
);

create table webhook_events (
  account_id text not null,
  id text not null,
  type text not null,
  task_id text,
  model text,
  key_id text,
  metadata text,
  traceparent text,
  body text not null,
  created_at timestamptz not null,
  project_id text,
  constraint webhook_events_pkey PRIMARY KEY (account_id, id),
  constraint webhook_events_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX webhook_events_by_time ON webhook_events USING btree (created_at);
CREATE UNIQUE INDEX webhook_events_of_task ON webhook_events USING btree (account_id, task_id) WHERE (task_id IS NOT NULL);

create view holds as
 SELECT open_holds.account_id,
    open_holds.ref,
    open_holds.key_id,
    'open'::text AS state,
    open_holds.amount,
    NULL::bigint AS cost,
    open_holds.model,
    open_holds.kind,
    NULL::timestamptz AS closed_at
   FROM open_holds
UNION ALL
 SELECT ledger_entries.account_id,
    ledger_entries.ref,
    ledger_entries.key_id,
    'settled'::text AS state,
    (- ledger_entries.held) AS amount,
    (ledger_entries.revenue + ledger_entries.loss) AS cost,
    ledger_entries.model,
    ledger_entries.kind,
    ledger_entries.created_at AS closed_at
   FROM ledger_entries
  WHERE (ledger_entries.type = 'settle'::text)
UNION ALL
 SELECT e.account_id,
    e.ref,
    e.key_id,
    'released'::text AS state,
    (- e.held) AS amount,
    NULL::bigint AS cost,
    e.model,
    e.kind,
    e.created_at AS closed_at
   FROM ledger_entries e
  WHERE ((e.type = 'release'::text) AND (NOT (EXISTS ( SELECT
           FROM ledger_entries l
          WHERE ((l.account_id = e.account_id) AND (l.ref = e.ref) AND (l.event = 'late'::text))))));

create view parked as
 SELECT account_id,
    delivery_id,
    endpoint AS lane,
    host,
    retry,
    since,
    queue_for
   FROM throttled_deliveries;

create view places as
 SELECT account_id,
    delivery_id,
    endpoint AS lane,
    host,
    claim,
    taken_at,
    expires_at
   FROM delivery_slots;

create view slow_lanes as
 SELECT endpoint AS lane,
    since
   FROM slow_endpoints;

create table auth.account (
  id text not null,
  "accountId" text not null,
  "providerId" text not null,
  "userId" text not null,
  "accessToken" text,
  "refreshToken" text,
  "idToken" text,
  "accessTokenExpiresAt" timestamptz,
  "refreshTokenExpiresAt" timestamptz,
  scope text,
  password text,
  "createdAt" timestamptz not null default CURRENT_TIMESTAMP,
  "updatedAt" timestamptz not null,
  email text,
  "usedAt" timestamptz,
  constraint account_pkey PRIMARY KEY (id),
  constraint "account_userId_fkey" FOREIGN KEY ("userId") REFERENCES auth."user"(id) ON DELETE CASCADE
);
CREATE INDEX account_of_user ON auth.account USING btree ("userId");
CREATE UNIQUE INDEX account_of_issuer ON auth.account USING btree ("providerId", "accountId") WHERE ("providerId" <> 'credential'::text);
CREATE TRIGGER password_changed AFTER UPDATE OF password ON auth.account
  FOR EACH ROW EXECUTE FUNCTION void_links('userId');
CREATE TRIGGER password_ends_sessions AFTER UPDATE OF password ON auth.account
  FOR EACH ROW EXECUTE FUNCTION end_sessions('userId');

create table auth.invitation (
  id text not null,
  "organizationId" text not null,
  email text not null,
  role text,
  status text not null,
  "expiresAt" timestamptz not null,
  "createdAt" timestamptz not null default CURRENT_TIMESTAMP,
  "inviterId" text not null,
  projects text[],
  constraint invitation_pkey PRIMARY KEY (id),
  constraint "invitation_inviterId_fkey" FOREIGN KEY ("inviterId") REFERENCES auth."user"(id) ON DELETE CASCADE,
  constraint "invitation_organizationId_fkey" FOREIGN KEY ("organizationId") REFERENCES auth.organization(id) ON DELETE CASCADE,
  constraint invitation_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'developer'::text, 'billing'::text, 'viewer'::text])))
);
CREATE INDEX invitation_by_email ON auth.invitation USING btree (email);
CREATE INDEX invitation_of_organization ON auth.invitation USING btree ("organizationId");

create table auth.member (
  id text not null,
  "organizationId" text not null,
  "userId" text not null,
  role text not null,
  "createdAt" timestamptz not null,
  projects text[],
  constraint member_pkey PRIMARY KEY (id),
  constraint "member_userId_organizationId_key" UNIQUE ("userId", "organizationId"),
  constraint "member_organizationId_fkey" FOREIGN KEY ("organizationId") REFERENCES auth.organization(id) ON DELETE CASCADE,
  constraint "member_userId_fkey" FOREIGN KEY ("userId") REFERENCES auth."user"(id) ON DELETE CASCADE,
  constraint member_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'developer'::text, 'billing'::text, 'viewer'::text])))
);
CREATE INDEX member_of_organization ON auth.member USING btree ("organizationId");

create table auth.organization (
  id text not null,
  name text not null,
  slug text not null,
  logo text,
  "createdAt" timestamptz not null,
  metadata text,
  constraint organization_pkey PRIMARY KEY (id),
  constraint organization_slug_key UNIQUE (slug),
  constraint organization_id_fkey FOREIGN KEY (id) REFERENCES accounts(id)
);

create table auth.session (
  id text not null,
  "expiresAt" timestamptz not null,
  token text not null,
  "createdAt" timestamptz not null default CURRENT_TIMESTAMP,
  "updatedAt" timestamptz not null,
  "ipAddress" text,
  "userAgent" text,
  "userId" text not null,
  "activeOrganizationId" text,
  "provedAt" timestamptz,
  "hasTwoFactors" boolean,
  constraint session_pkey PRIMARY KEY (id),
  constraint session_token_key UNIQUE (token),
  constraint "session_userId_fkey" FOREIGN KEY ("userId") REFERENCES auth."user"(id) ON DELETE CASCADE
);
CREATE INDEX session_of_user ON auth.session USING btree ("userId");

create table auth."twoFactor" (
  id text not null,
  secret text not null,
  "backupCodes" text not null,
  "userId" text not null,
  verified boolean,
  "failedVerificationCount" integer,
  "lockedUntil" timestamptz,
  "lastStep" bigint,
  constraint "twoFactor_pkey" PRIMARY KEY (id),
  constraint "twoFactor_userId_fkey" FOREIGN KEY ("userId") REFERENCES auth."user"(id) ON DELETE CASCADE
);
CREATE INDEX two_factor_of_user ON auth."twoFactor" USING btree ("userId");

create table auth."user" (
  id text not null,
  name text not null,
  email text not null,
  "emailVerified" boolean not null,
  image text,
  "createdAt" timestamptz not null default CURRENT_TIMESTAMP,
  "updatedAt" timestamptz not null default CURRENT_TIMESTAMP,
  "twoFactorEnabled" boolean,
  "isOperator" boolean not null default false,
  language text,
  constraint user_email_key UNIQUE (email),
  constraint user_pkey PRIMARY KEY (id),
  constraint user_language_check CHECK ((language ~ '^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$'::text))
);
CREATE TRIGGER factor_ends_sessions AFTER UPDATE OF "twoFactorEnabled" ON auth."user"
  FOR EACH ROW WHEN ((COALESCE(old."twoFactorEnabled", false) <> COALESCE(new."twoFactorEnabled", false))) EXECUTE FUNCTION end_sessions('id');
CREATE TRIGGER person_changed AFTER UPDATE OF email, "twoFactorEnabled" ON auth."user"
  FOR EACH ROW WHEN (((old.email <> new.email) OR (COALESCE(old."twoFactorEnabled", false) <> COALESCE(new."twoFactorEnabled", false)))) EXECUTE FUNCTION void_links('id');

create table auth.verification (
  id text not null,
  identifier text not null,
  value text not null,
  "expiresAt" timestamptz not null,
  "createdAt" timestamptz not null default CURRENT_TIMESTAMP,
  "updatedAt" timestamptz not null default CURRENT_TIMESTAMP,
  constraint verification_pkey PRIMARY KEY (id)
);
CREATE INDEX verification_by_identifier ON auth.verification USING btree (identifier);

CREATE OR REPLACE FUNCTION call_words(p_account text, p_user text, p_metadata jsonb, p_error text, p_status integer)
 RETURNS tsvector
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE COST 2000
AS $function$
  with pairs as materialized (
    select key, value from jsonb_each_text(case when jsonb_typeof(p_metadata) = 'object' then p_metadata end))
  select array_to_tsvector(coalesce(array_agg(left(md5(p_account), 8) || part), '{}'))
    from (
      select word from unnest(tsvector_to_array(to_tsvector('pg_catalog.simple', regexp_replace(
        concat_ws(' ', p_user, p_error, case when p_status >= 400 then p_status::text end,
          (select string_agg(key || ' ' || value, ' ') from pairs)),
        '[!-/:-@[-`{-~]', ' ', 'g')))) word
       where octet_length(word) <= 2000
      union all
      select '=' || left(md5(label), 16) from (
        select 'user ' || p_user
        union all select 'error ' || p_error
        union all select 'status ' || p_status::text where p_status >= 400
        union all select 'pair ' || key || ' ' || value from pairs
        union all select 'tag ' || trim(tag) from pairs, string_to_table(value, ',') tag where key = 'tags') l (label)
       where label is not null) p (part)
$function$;

CREATE OR REPLACE FUNCTION hold_is_sound(r open_holds)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
begin
  return r.amount >= 0 and r.exposed >= 0
    and r.kind in ('chat', 'embedding', 'rerank', 'moderation', 'image', 'video', 'audio');
end $function$;

CREATE OR REPLACE FUNCTION is_sound(r account_budgets)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
begin
  return r.amount between 0 and 1000000000000000 and r.spent >= r.opening and r.opening >= 0 and r.held >= 0
    and r.exposed >= 0 and r.since >= 0
    and (not r.is_hard or r.spent + r.held + r.exposed <= greatest(r.amount, r.allowed));
end $function$;

CREATE OR REPLACE FUNCTION is_sound(r balances)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
begin
  return r.held >= 0 and r.exposed >= 0 and r.amount >= r.held + r.exposed and r.amount <= 1000000000000000;
end $function$;

CREATE OR REPLACE FUNCTION is_sound(r budgets)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
begin
  if r.spent + r.held > r.limit_month
      and r.spent + r.held > r.limited_held + (case when r.month = r.limited_month then r.limited_spent else 0 end)
    or r.shares is not null and (r.spent <> 0 or r.held <> 0 or r.exposed <> 0 or r.limit_month is not null) then
    return false;
  end if;
  return r.spent >= 0 and r.held >= 0 and r.exposed >= 0 and coalesce(r.limit_month, 0) between 0 and 1000000000000000
    and r.month = date_trunc('month', r.month::timestamp);
end $function$;

CREATE OR REPLACE FUNCTION is_sound(r ledger_entries)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
declare
  fits boolean; -- which books a movement of its type may touch, in which direction, and what it must tell
begin
  if r.type = 'hold' then
    fits := r.event = 'hold' and r.held >= 0 and r.topup_source = 0 and r.revenue = 0 and r.loss = 0 and r.adjust = 0
      and r.key_id is not null and r.model is not null and r.kind is not null and r.reason is null and r.units is null;
  elsif r.type = 'settle' then
    fits := (r.event = 'close' or r.event = 'late' and r.held = 0) and r.held <= 0 and r.topup_source = 0 and r.revenue >= 0 and r.loss <= 0 and r.adjust = 0
      and r.revenue + r.loss >= 0
      and r.key_id is not null and r.model is not null and r.kind is not null and r.reason is null;
  elsif r.type = 'release' then
    fits := r.event = 'close' and r.held <= 0 and r.topup_source = 0 and r.revenue = 0 and r.loss = 0 and r.adjust = 0
      and r.key_id is not null and r.model is not null and r.kind is not null and r.reason is null and r.units is null;
  elsif r.type = 'topup' then
    fits := r.event = 'topup' and r.available > 0 and r.held = 0 and r.revenue = 0 and r.loss = 0 and r.adjust = 0
      and r.key_id is null and r.reason is not null and r.units is null;
  elsif r.type = 'adjustment' then
    fits := r.event = 'adjustment' and r.available <> 0 and r.held = 0 and r.topup_source = 0 and r.revenue = 0
      and r.loss = 0 and r.key_id is null and r.reason is not null and r.units is null;
  elsif r.type = 'upstream' then
    fits := r.event like 'upstream _%' and r.available = 0 and r.held = 0 and r.topup_source = 0 and r.revenue = 0
      and r.loss = 0 and r.adjust = 0 and r.upstream_basis is not null
      and r.key_id is null and r.model is not null and r.kind is not null and r.reason is null and r.units is null;
  else
    return false;
  end if;
  -- What is known of the upstream's charge.
  if r.upstream_basis is null then
    fits := fits and r.upstream_cost = 0 and r.upstream_unknown = 0 and r.upstream_base is null
      and r.provider is null and r.route is null;
  elsif r.type not in ('settle', 'release', 'upstream') or r.provider is null or r.route is null then
    return false;
  elsif r.upstream_basis in ('unknown', 'stopped') then
    fits := fits and r.upstream_cost = 0 and r.upstream_base is null
      and r.upstream_unknown = case r.upstream_basis when 'unknown' then 1 else -1 end;
  elsif r.upstream_basis in ('told', 'rows', 'counted', 'free') then
    fits := fits and r.upstream_cost between 0 and 1000000000000000
      and coalesce(r.upstream_base between 0 and 1000000000000000, false) and r.base_currency is not null
      and r.upstream_unknown = 0;
  else
    return false;
  end if;
  return fits
    and r.available + r.held + r.topup_source + r.revenue + r.loss + r.adjust = 0
    and r.upstream_cost + r.upstream_owed = 0
    and r.available_after >= 0 and r.held_after >= 0 and r.number >= 1
    and r.ref <> '' and length(r.ref) <= 255
    and r.month = date_trunc('month', r.month::timestamp)
    and r.month >= date_trunc('month', r.created_at at time zone 'UTC');
end $function$;

CREATE OR REPLACE FUNCTION message_words(p_account text, p_message text)
 RETURNS tsvector
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE COST 1000
AS $function$
  select array_to_tsvector(coalesce(array_agg(left(md5(p_account), 8) || word), '{}'))
    from unnest(tsvector_to_array(to_tsvector('pg_catalog.simple',
      regexp_replace(left(p_message, 300), '[!-/:-@[-`{-~]', ' ', 'g')))) word
   where octet_length(word) <= 2000
$function$;

CREATE OR REPLACE FUNCTION task_pairs(p_account text, p_metadata text)
 RETURNS bigint[]
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select array_agg(hashtextextended(p_account || ' ' || pair[1], 0))
    from regexp_matches(p_metadata, '"(?:[^"\\]|\\.)*":"(?:[^"\\]|\\.)*"', 'g') pair
$function$;

CREATE OR REPLACE FUNCTION task_query(p_account text, p_text text)
 RETURNS tsquery
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select string_agg('''' || left(md5(p_account), 8) || word || ''':*', ' & ')::tsquery
    from unnest(tsvector_to_array(to_tsvector('pg_catalog.simple',
      regexp_replace(left(p_text, 200), '[!-/:-@[-`{-~]', ' ', 'g')))) word
$function$;

CREATE OR REPLACE FUNCTION task_tags(p_account text, p_metadata text)
 RETURNS bigint[]
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE COST 2000
AS $function$
  select array_agg(hashtextextended(p_account || ' ' || trim(tag), 0))
    from string_to_table((regexp_match(p_metadata, '[{,]"tags":"((?:[^"\\]|\\.)*)"'))[1], ',') tag
$function$;

CREATE OR REPLACE FUNCTION task_words(p_account text, p_input text, p_metadata text)
 RETURNS tsvector
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE COST 2000
AS $function$
  select array_to_tsvector(coalesce(array_agg(left(md5(p_account), 8) || word), '{}'))
    from unnest(tsvector_to_array(to_tsvector('pg_catalog.simple', regexp_replace(
      case when length(p_input) <= 4000 then p_input
        else left(p_input, 4000) || ' ' || substr(p_input, strpos(p_input, '"prompt":"'), 4000) end
      || ' ' || replace(left(p_metadata, 4000), '":', '" '),
      '"[^"\\]*":|\\(?:u[0-9a-fA-F]{4}|.)|[!-/:-@[-`{-~]', ' ', 'g')))) word
   where octet_length(word) <= 2000
$function$;

-- function accept_attempt(p_now timestamptz, p_account text, p_id text, p_number integer, p_claim text, p_seen_ref text, p_run_ref text, p_running boolean, p_poll_after_ms integer) returns boolean
-- function add_background_contents(p_account_id text, p_response_id text, p_contents jsonb, p_bytes bytea[]) returns void
-- function add_delivery(p_now timestamptz, p_delivery jsonb) returns void
-- function add_event_delivery(p_now timestamptz, w webhook_endpoints, e webhook_events, p_replayed boolean) returns boolean
-- function add_file(p_now timestamptz, p_account text, p_id text, p_key text, p_task text, p_filename text, p_purpose text, p_storage_key text, p_kind text, p_content_type text, p_size_bytes bigint, p_width integer, p_height integer, p_duration_ms integer, p_expires_at timestamptz, p_count_max integer, p_size_bytes_max bigint) returns text
-- function add_refusals(p_accounts text[], p_starts timestamptz[], p_reasons text[], p_keys text[], p_budgets text[], p_models text[], p_counts bigint[]) returns void
-- function add_test_delivery(p_now timestamptz, p_delivery jsonb, p_claim text, p_timeout_ms double precision) returns void
-- function add_units(a jsonb, b jsonb) returns jsonb
-- function add_up_margins(p_account text, p_limit bigint) returns bigint
-- function add_up_usage(p_account text, p_limit bigint) returns bigint
-- function add_upload_part(p_part jsonb, p_size_bytes_max bigint, p_account_bytes_max bigint, p_expires_at timestamptz, OUT outcome text, OUT received_bytes bigint) returns record
-- function alert_event(a alerts, n alert_notices, p_now timestamptz) returns text
-- function append_items(p_account_id text, p_id text, p_turn text, p_now timestamptz, p_expires_at timestamptz, p_items_max integer, p_bytes_max bigint, p_ids text[], p_key_ids text[], p_contents bytea[], p_json_bytes integer[]) returns text
-- function ask_full_routes(p_now timestamptz, p_provider text) returns void
-- function begin_attempt(p_now timestamptz, p_attempt jsonb, p_limits jsonb) returns text
-- function begin_deliveries(p_now timestamptz, p_items jsonb) returns TABLE(account_id text, id text, answer text, number integer, event text, url text, body text, webhook_secret text, webhook_secret_before text, webhook_secret_rotated_at timestamptz)
-- function begin_periods(p_account text, p_now timestamptz, p_entries bigint) returns void
-- function budget_room(p_account text, p_project text, p_key text, p_member text, OUT ids text[], OUT room bigint) returns record
-- function budget_spent(p_account text, p_scope text, p_subject text, p_from timestamptz) returns bigint
-- function call_query(p_account text, p_words text, p_labels text[]) returns tsquery
-- function charges_with_labels(p_account text, p_from timestamptz, p_to timestamptz, p_by_tag boolean) returns TABLE(at timestamptz, model text, key_id text, project_id text, kind text, cost bigint, units jsonb, end_user text, metadata jsonb, tag text)
-- function claim_alert(p_now timestamptz, p_alert text, p_channel text, p_per_hour integer) returns TABLE(answer text, number integer, event text, claims integer, failures integer)
-- function claim_attempt(p_account text, p_id text, p_number integer, p_seen_claim text, p_claim text) returns boolean
-- function close_attempt(p_now timestamptz, p_account text, p_id text, p_number integer, p_claim text, p_state text, p_reason text, p_message text, p_send_start boolean) returns boolean
-- function close_hold(p_now timestamptz, p_end jsonb, OUT outcome text, OUT state text, OUT charged bigint, OUT available bigint, OUT upstream bigint) returns record
-- function close_ledger(p_account text, p_month date, p_number bigint, p_count bigint) returns void
-- function closed_routes(p_now timestamptz, p_provider text) returns text[]
-- function commit_hold(p_now timestamptz, p_call jsonb, OUT outcome text, OUT state text, OUT charged bigint, OUT available bigint, OUT remaining bigint, OUT upstream bigint) returns record
-- function count_hard_budgets(p_account text) returns void
-- function count_in_budgets(p_ids text[], p_spent bigint, p_held bigint, p_exposed bigint) returns void
-- function create_task(p_now timestamptz, p_account text, p_key text, p_id text, p_model text, p_kind text, p_input text, p_metadata text, p_webhook_url text, p_currency text, p_pricing jsonb, p_held_units jsonb, p_estimate bigint, p_deadline timestamptz, p_failures_max integer, p_idempotency_key text, p_body_hash bytea, OUT outcome text, OUT task_id text, OUT retry_after integer, OUT available bigint, OUT remaining bigint) returns record
-- function create_tasks(p_now timestamptz, p_account text[], p_key text[], p_id text[], p_model text[], p_kind text[], p_input text[], p_metadata text[], p_webhook_url text[], p_currency text[], p_pricing jsonb[], p_held_units jsonb[], p_estimate bigint[], p_created_at timestamptz[], p_deadline timestamptz[], p_failures_max integer, OUT outcome text[], OUT retry_after integer[], OUT available bigint[], OUT remaining bigint[]) returns record
-- function create_webhook_endpoint(p_endpoint jsonb, p_max integer) returns webhook_endpoints
-- function delete_account(p_account_id text) returns text
-- function drop_delivery(p_now timestamptz, d deliveries) returns void
-- function end_attempt(p_account text, p_id text, p_ended_at timestamptz, p_delivered boolean, p_delays_ms double precision[]) returns deliveries
-- function end_background_response(p_account_id text, p_id text, p_claim text, p_status text, p_now timestamptz, p_ended jsonb, p_contents jsonb, p_bytes bytea[]) returns boolean
-- function end_deliveries(p_now timestamptz, p_items jsonb, p_delays_ms double precision[]) returns TABLE(account_id text, id text, state text, next_at timestamptz)
-- function end_leases(p_node text) returns void
-- function end_line(p_line jsonb, p_claim text, p_result bytea) returns boolean
-- function end_sessions() returns trigger
-- function end_task(p_now timestamptz, p_end jsonb, p_body text) returns text
-- function endpoint_has_room(p_endpoint text, p_retry boolean, p_more bigint) returns boolean
-- function endpoint_takes(w webhook_endpoints, e webhook_events) returns boolean
-- function endpoint_wants(w webhook_endpoints, p_type text, p_model text, p_key text, p_metadata text) returns boolean
-- function engine_live_keys() returns TABLE(key text)
-- function engine_send(p_queue text, p_data jsonb, p_start_after timestamptz DEFAULT NULL::timestamptz, p_key text DEFAULT NULL::text) returns uuid
-- function engine_send_many(p_queue text, p_data jsonb[], p_key text[]) returns void
-- function entry_near(p_account text, p_at timestamptz, p_later boolean) returns bigint
-- function expired_holds(p_now timestamptz, p_silent interval, p_late interval, p_count integer) returns TABLE(account_id text, ref text)
-- function fail_attempt(p_now timestamptz, p_attempt jsonb, p_send_start boolean) returns boolean
-- function files_problem(p_account text, p_session text, p_size_bytes bigint, p_count_max integer, p_size_bytes_max bigint) returns text
-- function find_repeated(p_account text, p_key text, p_once jsonb, p_now timestamptz) returns SETOF idempotency_keys
-- function finish_task(p_now timestamptz, p_account text, p_id text, p_claim text, p_seen_started_at timestamptz, p_started_at timestamptz, p_status text, p_cost bigint, p_measured bigint, p_units jsonb, p_error_type text, p_error_message text, p_counts boolean, p_body text, p_files jsonb, p_attempt_state text, p_attempt_reason text, p_upstream_cost text, p_delivery jsonb, p_upstream jsonb DEFAULT NULL::jsonb) returns text
-- function follow_endpoint(p_now timestamptz, d deliveries, w webhook_endpoints) returns deliveries
-- function hand_on(p_host text, p_now timestamptz) returns void
-- function has_others(p_node text, p_clock timestamptz) returns boolean
-- function hold_money(p_now timestamptz, p_clock timestamptz, p_hold jsonb, p_node text, OUT outcome text, OUT available bigint, OUT remaining bigint) returns record
-- function host_has_room(p_host text, p_retry boolean) returns boolean
-- function insert_background_response(p_row jsonb, p_hold jsonb, p_unfinished_max integer, p_contents jsonb, p_bytes bytea[], OUT outcome text, OUT available bigint, OUT remaining bigint) returns record
-- function insert_batch(p_batch jsonb, p_count_max integer) returns boolean
-- function insert_file(p_file jsonb, p_count_max integer, p_size_bytes_max bigint) returns text
-- function insert_task(p_task jsonb, p_input text, p_failures_max integer, p_once jsonb, OUT outcome text, OUT task_id text, OUT retry_after integer, OUT available bigint, OUT remaining bigint) returns record
-- function insert_tasks(p_now timestamptz, p_tasks jsonb, p_failures_max integer, OUT outcome text[], OUT retry_after integer[], OUT available bigint[], OUT remaining bigint[]) returns record
-- function insert_upload_session(p_session jsonb, p_count_max integer, p_size_bytes_max bigint) returns text
-- function is_closed(e ledger_entries) returns boolean
-- function is_in_budget(p_scope text, p_subject text, p_project text, p_key text, p_member text) returns boolean
-- function is_shared_budget(p_key text, p_other text) returns boolean
-- function keep_leases(p_node text) returns void
-- function labelled_charges(p_account text, p_from timestamptz, p_to timestamptz, p_by_tag boolean) returns TABLE(at timestamptz, model text, key_id text, kind text, cost bigint, units jsonb, end_user text, metadata jsonb, tag text)
-- function lane_has_room(p_lane text, p_retry boolean, p_more bigint) returns boolean
-- function last_entry_before(p_account text, p_at timestamptz) returns bigint
-- function lease_amount(p_free bigint, p_in_use bigint, p_least bigint, p_is_recalled boolean) returns bigint
-- function lease_share(p_free bigint, p_own bigint, p_others bigint) returns bigint
-- function lease_state(p_account text, p_resource text, p_node text, p_clock timestamptz) returns TABLE(own bigint, others bigint, lost bigint, is_recalled boolean)
-- function lock_hosts(p_hosts text[]) returns void
-- function lock_provider(p_provider text) returns void
-- function money_batch(p_now timestamptz, p_verb text[], p_account text[], p_key text[], p_ref text[], p_amount bigint[], p_model text[], p_kind text[], p_expires timestamptz[], p_beyond boolean[], p_units jsonb[], p_upstream jsonb[] DEFAULT NULL::jsonb[], p_pledge bigint[] DEFAULT NULL::bigint[], p_node text DEFAULT NULL::text, OUT outcome text[], OUT state text[], OUT charged bigint[], OUT available bigint[], OUT remaining bigint[], OUT upstream bigint[]) returns record
-- function money_close(p_now timestamptz, p_account text, p_ref text, p_cost bigint, p_beyond boolean, p_units jsonb, p_upstream jsonb DEFAULT NULL::jsonb, OUT outcome text, OUT state text, OUT charged bigint, OUT available bigint, OUT upstream bigint) returns record
-- function money_credit(p_now timestamptz, p_account text, p_type text, p_amount bigint, p_ref text, p_reason text, OUT outcome text, OUT available bigint) returns record
-- function money_hold(p_now timestamptz, p_account text, p_key text, p_ref text, p_amount bigint, p_model text, p_kind text, p_expires timestamptz, p_node text DEFAULT NULL::text, OUT outcome text, OUT available bigint, OUT remaining bigint) returns record
-- function money_keep(p_now timestamptz, p_account text, p_key text, p_ref text, p_pledge bigint, p_model text, p_kind text, p_cost bigint, p_beyond boolean, p_units jsonb, p_upstream jsonb, OUT outcome text, OUT state text, OUT charged bigint, OUT available bigint, OUT remaining bigint, OUT upstream bigint) returns record
-- function money_limit(p_key text, p_limit bigint) returns boolean
-- function money_project(p_key text, p_project text) returns boolean
-- function money_upstream(p_now timestamptz, p_account text, p_ref text, p_number text, p_provider text, p_route text, p_model text, p_kind text, p_basis text) returns void
-- function month_of(p_now timestamptz) returns date
-- function move_backlog(p_host text, p_now timestamptz) returns void
-- function move_lines(p_host text, p_now timestamptz) returns void
-- function move_money(p_now timestamptz, p_clock timestamptz, p_members jsonb, p_node text, OUT outcome text[], OUT state text[], OUT charged bigint[], OUT available bigint[], OUT remaining bigint[], OUT upstream bigint[]) returns record
-- function note_caller_change() returns trigger
-- function note_endpoint_attempt(d deliveries, p_at timestamptz, p_delivered boolean, p_status integer) returns void
-- function note_full_route(p_now timestamptz, p_route text, p_provider text, p_wait_ms double precision, p_is_firm boolean) returns void
-- function note_run(p_now timestamptz, p_run jsonb) returns boolean
-- function note_upstream(p_now timestamptz, p_attempt jsonb, p_basis text) returns void
-- function open_attempt(p_now timestamptz, p_account text, p_id text, p_number integer, p_claim text, p_route text, p_provider text, p_settings text) returns boolean
-- function open_test_delivery(p_now timestamptz, p_account text, p_id text, p_url text, p_body text, p_lane text, p_host text, p_claim text, p_timeout_ms double precision) returns void
-- function pair_names(p_account text, p_newest integer) returns TABLE(name text)
-- function paused_until(p_now timestamptz, p_account text, p_failures_max integer) returns timestamptz
-- function period_begin(p_period text, p_now timestamptz) returns timestamptz
-- function project_of_key(p_key text) returns text
-- function promote_tasks(p_now timestamptz, p_provider text, p_limits jsonb) returns integer
-- function promote_throttled(p_endpoint text) returns void
-- function provider_room(p_now timestamptz, p_provider text, p_limits jsonb) returns bigint
-- function publish_event(p_now timestamptz, p_event jsonb, p_data text) returns integer
-- function queue_delivery(p_now timestamptz, p_account text, p_id text, p_task text, p_event text, p_url text, p_body text, p_lane text, p_host text) returns void
-- function queue_for_host(p_lane text) returns void
-- function readable_metadata(p_metadata text) returns jsonb
-- function ready_file(p_account text, p_id text, p_sha256 text, p_name text, p_session text, p_now timestamptz) returns text
-- function recall_leases(p_account text, p_resource text, p_clock timestamptz) returns void
-- function refuse_audit_change() returns trigger
-- function refuse_change() returns trigger
-- function refuse_invoice_change() returns trigger
-- function remove_account_budget(p_account text, p_id text) returns boolean
-- function remove_closed(p_account text, p_after bigint, p_limit bigint, OUT last bigint, OUT removed integer) returns record
-- function remove_item(p_account_id text, p_conversation_id text, p_id text, p_now timestamptz) returns text
-- function replay_events(p_now timestamptz, p_account text, p_endpoint text, p_first text, p_end text, p_which text, p_max integer, p_counts_only boolean, OUT events integer, OUT last_at timestamptz, OUT has_more boolean) returns record
-- function rescue_deliveries(p_now timestamptz, p_settled timestamptz) returns integer
-- function resend_delivery(p_now timestamptz, p_account text, p_id text) returns text
-- function say_endpoint() returns trigger
-- function send_delivery_job(p_queue text, p_account text, p_id text, p_job integer, p_after_ms double precision) returns void
-- function send_next_job(p_account text, p_id text, p_after_ms double precision) returns void
-- function set_account_budget(p_now timestamptz, p_budget jsonb, p_max integer) returns text
-- function stop_attempt(p_now timestamptz, p_account text, p_id text, p_number integer) returns void
-- function tags_in(p_metadata jsonb) returns TABLE(tag text)
-- function take_place(d deliveries, p_claim text, p_now timestamptz) returns text
-- function take_shares(p_clock timestamptz, p_node text, p_requests jsonb, OUT outcome text[], OUT amount bigint[], OUT others bigint[], OUT others_in_use bigint[], OUT others_free_in_ms double precision[]) returns record
-- function take_slot(d deliveries, p_claim text, p_now timestamptz) returns text
-- function take_try(p_name bytea, p_now timestamptz) returns double precision
-- function throttle_task(p_account text, p_id text, p_routes jsonb, p_give_up_at timestamptz) returns boolean
-- function void_links() returns trigger
