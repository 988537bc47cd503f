-- A node that serves alone counts requests in its memory; several count here. A crash of PostgreSQL empties the table,
-- which forgets at most the last minute of requests: that is cheaper than a log record for every request.
create unlogged table limit_counters (
  app_id uuid not null,
  -- The limit, the endpoint and the single thing it counts for. The empty one is the app's gate: whoever holds that row
  -- decides for the app, so that the others need no locks and no order.
  counter text not null,
  -- Pairs of time (ms) and how many were let in up to then since the pair before.
  log double precision[] not null,
  -- From this time (ms) on nothing in the log counts any more.
  idle_at double precision not null,
  constraint limit_counters_pk primary key (app_id, counter)
) with (fillfactor = 50);

-- Global, small (a reference table when distributed): the processes that answer requests, and how each of them counts.
create table server_nodes (
  id uuid not null,
  counts text not null,
  lease_until double precision not null,
  constraint server_nodes_pk primary key (id),
  constraint server_nodes_counts_known check (counts in ('local', 'shared'))
);
