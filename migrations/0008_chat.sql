-- A record of each chat call: what was tried, counted, charged, and how long it took. No content.

-- room: chat
create table chat_calls (
  account_id text not null references accounts,
  id text not null,           -- the request's id, under which its money was held
  key_id text not null,
  model text not null,
  style text not null check (style in ('completions', 'messages')),
  stream boolean not null,
  status int not null,        -- as it was answered, or would have been had the answer not begun
  error_type text,
  finish text,                -- in the words of the style
  attempts jsonb not null,    -- [{route, outcome, reason, duration_ms}]
  input_tokens int not null check (input_tokens >= 0),
  cached_input_tokens int not null check (cached_input_tokens >= 0),
  cache_write_tokens int not null check (cache_write_tokens >= 0),
  output_tokens int not null check (output_tokens >= 0),
  reasoning_tokens int not null check (reasoning_tokens >= 0),
  counted_here boolean not null, -- the upstream told no usage, or not all of it
  cost bigint not null check (cost >= 0),
  currency text not null,
  first_content_ms int,
  total_ms int not null,
  created_at timestamptz not null,
  primary key (account_id, id)
);
create index chat_calls_by_time on chat_calls (created_at);

-- Chat holds whose node died before it settled them: what was delivered is not known any more, so
-- everything goes back.
-- room: money
create function expired_holds(p_now timestamptz, p_count int) returns table (account_id text, ref text)
  language sql stable as $$
  select h.account_id, h.ref from open_holds h where h.expires_at < p_now order by h.expires_at limit p_count
$$;
create index open_holds_expiring on open_holds (expires_at) where expires_at is not null;
