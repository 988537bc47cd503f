-- Several servers lease what they let in from this table, each time by one statement. A crash of PostgreSQL empties it, which
-- forgets at most the last minute of requests: that is cheaper than a log record for every request.
drop table limit_counters;
create unlogged table limit_counters (
  app_id uuid not null,
  -- The limit, the endpoint and the single thing it counts for.
  counter text not null,
  -- New with each change: whoever writes a row names the stamp that it has read.
  stamp bigint not null,
  -- That stamp. Null from a server that counted alone and knows everything.
  previous bigint,
  -- What was let in and what servers hold, in the words of limits/lease.ts.
  state text not null,
  -- From this time (ms) on nothing in the row counts any more.
  idle_at double precision not null,
  constraint limit_counters_pk primary key (app_id, counter)
) with (fillfactor = 70);

-- A server that is gone stays in the census while something that it let in may still count.
alter table server_nodes drop constraint server_nodes_counts_known;
alter table server_nodes add constraint server_nodes_counts_known check (counts in ('local', 'shared', 'gone'));
