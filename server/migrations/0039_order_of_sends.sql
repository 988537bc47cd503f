-- Sends of one run to the same subscription arrive in the order of their nodes: each knows its place on the way of its run, and waits
-- while one before it is pending. 0: nothing can come before or after it.
alter table deliveries add column step integer not null default 0;

create index deliveries_in_order on deliveries (app_id, run_id, subscription_id, step) where state = 'pending' and step > 0;
