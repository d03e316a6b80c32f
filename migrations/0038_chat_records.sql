-- A record names its account as the ledger does, without a foreign key: no account is ever deleted, money of this one
-- was held for the call, and looking it up again was a fifth of what PostgreSQL does for a record.

alter table chat_calls drop constraint chat_calls_account_id_fkey;
