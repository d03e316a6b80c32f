-- The models that a key may use: ids, names of aliases, or prefixes such as 'acme/*'. Null, as for all keys so far: all.
alter table api_keys add column models text[];
alter table api_keys add constraint api_keys_models_check check (cardinality(models) between 1 and 100) not valid;
