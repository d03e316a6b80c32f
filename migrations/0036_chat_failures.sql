-- Chat calls in which a route gave no answer, by time, for the operator: few of all calls.

create index chat_calls_gone_wrong on chat_calls (created_at) where status >= 500 or jsonb_array_length(attempts) > 1;
