#!/bin/sh
# As the official image: arguments alone and files go to redis-server, which does not run as root.
# Without a file it also answers other machines that know no password: a network of containers
# decides who reaches it.
set -eu
case "${1:-}" in -* | *.conf) set -- redis-server "$@" ;; esac
if [ "$1" = redis-server ] && [ "$(id -u)" = 0 ]; then
  chown redis /data
  exec setpriv --reuid=redis --regid=redis --clear-groups "$0" "$@"
fi
if [ "$1" = redis-server ]; then
  shift
  # Only the first argument can be a file.
  case "${1:-}" in
  "" | -*) set -- redis-server --protected-mode no "$@" ;;
  *) set -- redis-server "$@" ;;
  esac
fi
exec "$@"
