#!/bin/sh
# As the official image: arguments alone go to nats-server.
set -eu
if [ "${1#-}" != "$1" ]; then set -- nats-server "$@"; fi
exec "$@"
