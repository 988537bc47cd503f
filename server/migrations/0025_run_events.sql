-- The events by which conditions of a run were met, in that order: id, name, at, properties. What it sends may speak of them.
alter table journey_runs add column met_events jsonb not null default '[]';

-- It was to leave early when it came in, so it is done with its first node before.
alter table journey_runs add column exits_later boolean not null default false;
