-- An account may ask its members for a second factor: without one they see nothing of it. Its keys are not concerned.
alter table accounts add column second_factor_required boolean not null default false;
