-- Moves entries to the stream of dead letters. Only those that the consumer still has; it returns their
-- ids.
-- KEYS: the stream, the stream of dead letters. ARGV: group, consumer, how many dead letters are kept, and
-- for each entry: its id, how often it was tried, and the error.
local stream, dead, group, me, kept = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local owned = {}
for at = 4, #ARGV, 3 do
  local id = ARGV[at]
  local pending = redis.call('XPENDING', stream, group, id, id, 1)[1]
  if pending and pending[2] == me then
    local fields = (redis.call('XRANGE', stream, id, id)[1] or {id, {}})[2]
    redis.call('XADD', dead, 'MAXLEN', '~', kept, '*', 'dead_attempts', ARGV[at + 1],
      'dead_error', ARGV[at + 2], 'dead_entry', id, unpack(fields))
    redis.call('XACK', stream, group, id)
    redis.call('XDEL', stream, id)
    owned[#owned + 1] = id
  end
end
return owned
