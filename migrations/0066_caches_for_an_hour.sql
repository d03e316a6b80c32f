-- How many of the tokens that a call has written to its upstream's cache stay there for an hour. Null: written by a node
-- that did not know of such.

-- room: chat
alter table chat_calls add column cache_write_1h_tokens int check (cache_write_1h_tokens >= 0);
