-- Tools that a provider runs, in the record of a call: which of them the model was not given.
alter table chat_calls add column tools jsonb;
