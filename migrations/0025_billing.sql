-- What an account wants on its invoices, and when it wants to be told that money runs out.

-- room: billing
create table billing_details (
  account_id text primary key references accounts,
  company text not null default '' check (length(company) <= 200),
  address text not null default '' check (length(address) <= 400),
  postal_code text not null default '' check (length(postal_code) <= 20),
  city text not null default '' check (length(city) <= 100),
  country text not null default '' check (country ~ '^([A-Z]{2})?$'), -- ISO 3166-1
  tax_id text not null default '' check (length(tax_id) <= 40),
  email text not null default '' check (length(email) <= 254),
  updated_at timestamptz not null
);

-- Below this much available, the account's people are told; once, until there is more again.
-- room: billing
create table balance_alerts (
  account_id text primary key references accounts,
  threshold bigint not null check (threshold between 1 and 1000000000000000), -- millionths of the account's currency
  told_at timestamptz, -- null: there was more than that when somebody last looked
  updated_at timestamptz not null
);
