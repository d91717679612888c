-- Gives entries to another consumer, or extends their leases. Only those that the consumer still has; it
-- returns their ids.
-- KEYS: the stream. ARGV: group, consumer, and for each entry: its id, how much of its lease is over in ms,
-- how often it counts as leased, and who has it from now on.
local stream, group, me = KEYS[1], ARGV[1], ARGV[2]
local owned = {}
for at = 3, #ARGV, 4 do
  local id, idle, times, owner = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local pending = redis.call('XPENDING', stream, group, id, id, 1)[1]
  if pending and pending[2] == me then
    redis.call('XCLAIM', stream, group, owner, 0, id, 'IDLE', idle, 'RETRYCOUNT', times, 'JUSTID')
    owned[#owned + 1] = id
  end
end
return owned
