-- What became of what a run was sent is asked by the run: its user's subscriptions of today need not be those that it was sent to.
create index deliveries_by_run on deliveries (app_id, message_id, run_id)
  where run_id <> '00000000-0000-0000-0000-000000000000';
