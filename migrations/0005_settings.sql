-- What all nodes share and nobody configures: secrets made at the first start.

-- room: db
create table settings (
  name text primary key,
  value text not null
);
