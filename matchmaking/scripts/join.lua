-- Makes a ticket, or finds the one that an earlier request with the same key made.
local queue, idempotency, of_user, joins, buckets = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local id, user_id, mode, key, attributes, attributes_hash, trace_id, traceparent, bucket =
  ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local ticket_ttl, result_ttl, idempotency_ttl = tonumber(ARGV[10]), tonumber(ARGV[11]), ARGV[12]
local most_waiting, most_joins = tonumber(ARGV[13]), tonumber(ARGV[14])

local made = redis.call('GET', idempotency)
if made then
  local made_id, made_hash = string.match(made, '^(%S+) (%S+)$')
  local ticket = made_id and read(made_id)
  if ticket then
    if made_hash ~= attributes_hash then return { 'conflict' } end
    return shown(ticket, catch_up(ticket))
  end
end

local waiting = 0
for _, other in ipairs(redis.call('ZRANGE', of_user, 0, -1)) do
  local ticket = read(other)
  if ticket and not ticket.broken and ticket.status == 'QUEUED' and ticket.expires_ms > now then
    waiting = waiting + 1
  else
    redis.call('ZREM', of_user, other)
  end
end
if waiting >= most_waiting then return { 'queued' } end

local joined = redis.call('INCR', joins)
if joined == 1 then redis.call('PEXPIRE', joins, ticket_ttl + result_ttl) end
if joined > most_joins then return { 'too many', redis.call('PTTL', joins) } end

local expires = now + ticket_ttl
redis.call('HSET', tickets .. id, 'user_id', user_id, 'mode', mode, 'status', 'QUEUED',
  'created_ms', now, 'expires_ms', expires, 'attributes', attributes,
  'attributes_hash', attributes_hash, 'idempotency_key', key, 'queue', queue,
  'trace_id', trace_id, 'traceparent', traceparent)
redis.call('PEXPIRE', tickets .. id, ticket_ttl + result_ttl)
redis.call('ZADD', queue, now, id)
redis.call('ZADD', expiring, expires, id)
redis.call('ZADD', of_user, now, id)
redis.call('PEXPIRE', of_user, ticket_ttl)
redis.call('SET', idempotency, id .. ' ' .. attributes_hash, 'PX', idempotency_ttl)
if bucket ~= '' then redis.call('SADD', buckets, bucket) end
return { 'made', '', id, 'QUEUED', expires, '', '', '' }
