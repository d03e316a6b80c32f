-- Prices of chat calls as they were when the call was made, each list of them once, under the hash of what it says.
-- module: chat
create table call_prices (
  id text primary key check (length(id) = 22),
  pricing jsonb not null, -- currency, rate, rows
  first_used_at timestamptz not null
);
-- Null: a call of before, or one whose prices could not be stored.
alter table chat_calls add column price_id text;
