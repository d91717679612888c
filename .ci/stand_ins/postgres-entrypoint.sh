#!/bin/bash
# As the official image: an empty data folder becomes a cluster for POSTGRES_USER, then PostgreSQL
# takes the place of this script.
set -euo pipefail

if [ "${1#-}" != "$1" ]; then set -- postgres "$@"; fi
if [ "$1" != postgres ]; then exec "$@"; fi

if [ "$(id -u)" = 0 ]; then
  chown postgres "$PGDATA"
  exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  user=${POSTGRES_USER:-postgres} database=${POSTGRES_DB:-${POSTGRES_USER:-postgres}}
  # shellcheck disable=SC2086 # several arguments in one setting
  initdb --username="$user" --pwfile=<(echo "${POSTGRES_PASSWORD:?is required}") \
    --encoding=UTF8 --no-instructions ${POSTGRES_INITDB_ARGS:-}
  printf '\nhost all all all scram-sha-256\n' >>"$PGDATA/pg_hba.conf"
  echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
  if [ "$database" != postgres ]; then
    pg_ctl start --wait --silent --options="-c listen_addresses=''"
    PGPASSWORD=$POSTGRES_PASSWORD psql --no-psqlrc --quiet --username="$user" --dbname=postgres \
      --command="create database \"$database\""
    pg_ctl stop --wait --silent
  fi
fi
exec "$@"
