-- Which install of an app a push subscription is of, as the SDK on the device says (OneSignal-Install-Id). An install has one push
-- subscription: whoever registers with the same id takes it from the one before, and of two at once the constraint decides.
alter table subscriptions add column install_id uuid;
create unique index subscriptions_by_install on subscriptions (app_id, install_id) where install_id is not null;
