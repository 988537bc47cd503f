-- How many subscriptions an app has, kept by every statement that adds, removes or changes one: counting a million rows for
-- each view of an app would be slow. Several rows per app, so that writers seldom wait for each other; their sum is the count.
create table player_counts (
  app_id uuid not null,
  slot smallint not null,
  players bigint not null default 0,
  -- Can be reached: enabled, with a token, not unsubscribed.
  subscribed bigint not null default 0,
  -- Reached by push to the web or a mobile device.
  messageable bigint not null default 0,
  constraint player_counts_pk primary key (app_id, slot)
) with (fillfactor = 50);

insert into player_counts (app_id, slot, players, subscribed, messageable)
select s.app_id, 0, count(*),
  count(*) filter (where s.enabled and s.token is not null and coalesce(s.notification_types, 1) > 0),
  count(*) filter (where s.enabled and s.token is not null and coalesce(s.notification_types, 1) > 0
    and s.type not in ('Email', 'SMS', 'WindowsPhonePush', 'AlexaPush'))
from subscriptions s
group by s.app_id;
