-- An erasure of a user is an operation, too.
alter table operations drop constraint operations_kind_check;
alter table operations add constraint operations_kind_known
  check (kind in ('SEND_BACK', 'ERASE_USER')) not valid;
alter table operations drop constraint operations_layer_check;
alter table operations add constraint operations_layer_known
  check (layer in ('advisory', 'delivery', 'user')) not valid;
