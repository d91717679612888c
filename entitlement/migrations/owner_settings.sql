-- What only the owner may set, because whoever takes over the service could use it to delete audit
-- rows early. Applied after each migration, with the values of the settings.
update audit_retention set keep_months = :retention_audit_months;
