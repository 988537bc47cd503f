-- Nobody read when a slice began.
alter table slices drop column begun_at;
