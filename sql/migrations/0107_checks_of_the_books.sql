-- Checks of the books, as they ended: pages show the last one instead of asking for another, and the next one begins
-- where it began.
-- room: money
create table book_checks (
  started_at timestamptz primary key,
  ended_at timestamptz not null,
  is_full boolean not null,
  accounts bigint not null,
  entries bigint not null,
  open_holds bigint not null,
  difference text not null, -- decimal
  findings jsonb not null   -- empty: everything is right
);
