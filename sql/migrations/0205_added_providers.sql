-- Providers and models that operators add in the dashboard, beside those of medley.yaml.

-- One row per provider. entry: as in medley.yaml, without its key. api_key: a text as src/db/content.ts stores one; without
-- key_id it is not encrypted. margin: the factor on the provider's own prices.
-- room: catalog
create table added_providers (
  name text primary key check (name ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  preset text,
  entry json not null check (json_typeof(entry) = 'object'),
  key_id text,
  api_key bytea,
  last_four text,
  prefix text not null,
  margin text not null check (margin ~ '^[0-9]{1,3}([.][0-9]{1,4})?$'),
  is_off boolean not null default false,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  check ((api_key is null) = (last_four is null))
);

-- One row per model. entry: as in medley.yaml, at the provider's own prices; null for one of the default catalogue, whose id
-- is in shipped. margin: in place of the provider's. price: in place of both.
-- room: catalog
create table added_models (
  id text primary key,
  provider text not null references added_providers on delete cascade,
  entry json check (json_typeof(entry) = 'object'), -- jsonb would change the order of the fields of an input
  shipped text,
  margin text check (margin ~ '^[0-9]{1,3}([.][0-9]{1,4})?$'),
  price json check (json_typeof(price) = 'array'),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  check ((entry is null) <> (shipped is null))
);
create index added_models_by_provider on added_models (provider);
