#!/bin/sh
# Starts Redis with redis.conf, which is beside this file, and with these users. Their passwords come from
# the environment, and are written into no file and no argument.
#
# The service has only the keys and channels of matchmaking, and only the commands that it and its
# scripts use, because a script has the rights of its caller. The user "operator" is for people:
# `redis-cli --user operator`. Nobody gets in without a password.
set -eu
exec redis-server - "$@" <<END
include "$(dirname "$0")/redis.conf"
user default reset
user matchmaking reset on >$MATCHMAKING_REDIS_PASSWORD ~mm:* &mm:* \
  +ping +info +config|get +time +waitaof +multi +exec +script|load +eval +evalsha +publish +subscribe \
  +exists +del +get +set +incr +pexpire +pttl +hset +hdel +hget +hmget +sadd +srem +smembers \
  +zadd +zrem +zcard +zrange +zpopmin +xadd +xack +xdel +xlen +xrange +xpending +xclaim +xreadgroup \
  +xgroup|create +xgroup|delconsumer +xinfo|consumers
user operator reset on >$OPERATOR_REDIS_PASSWORD ~* &* +@all
END
