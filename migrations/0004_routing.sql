-- Health of routes: what one node learned, all nodes act on. A route without a row is healthy.

-- room: routing
create table route_health (
  route text primary key,
  cause text not null check (cause in ('upstream_error', 'timeout')),
  openings int not null check (openings >= 1), -- in a row; each makes the next pause longer
  opened_at timestamptz not null,
  retry_at timestamptz not null,               -- from here on one request at a time may try
  probing_until timestamptz
);
