-- module: conversations
-- A backup reads those that are in a turn at its moment, and finds them by this. Few are.
create index if not exists conversations_in_turn on conversations (account_id, id) where turn is not null;
