-- The body of a mail may be written in several languages, each of them as MJML: what they were compiled to, by language code.
-- Bodies in one language keep theirs in email_html.
alter table templates add column email_html_by_language jsonb;
alter table messages add column email_html_by_language jsonb;
alter table messages alter column email_html_by_language set statistics 0;
