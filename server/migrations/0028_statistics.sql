-- No query is planned by these, and to gather their statistics took more than half of an analyze, which a young table has often.
alter table messages
  alter column audience set statistics 0,
  alter column content set statistics 0,
  alter column email_html set statistics 0,
  alter column options set statistics 0;
