-- Whoever adds somebody to an open message writes the deliveries too: nobody waits in between, and no job looks for who does.
delete from jobs j using messages m
  where j.name = 'messages.expand' and m.app_id = j.app_id and m.id::text = j.key and m.audience ->> 'kind' = 'recipients';

drop table message_recipients;
