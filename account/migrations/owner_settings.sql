-- Only the owner may set this: an attacker who controls the service could otherwise delete audit rows
-- early. Applied after each migration, with the values of the settings.
update audit_retention set keep_days = :retention_audit_days;
