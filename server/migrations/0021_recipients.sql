-- Who is to get a message that takes its recipients one by one, for as long as it is open: a user in a run. Read and deleted by
-- expansion, so that what is here is what waits.
create table message_recipients (
  app_id uuid not null,
  message_id uuid not null,
  run_id uuid not null,
  user_id uuid not null,
  constraint message_recipients_pk primary key (app_id, message_id, run_id)
);

-- Where so many a minute are sent of such a message: until when every place is taken.
alter table messages add column throttled_to timestamptz;
