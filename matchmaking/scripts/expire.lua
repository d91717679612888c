-- Ends the tickets whose time is over. ARGV: how many at most. Returns how many were expired and invalid,
-- and in how many ms the next one is due, or -1.
local queue = KEYS[5] -- of a ticket that no longer says where it waits
local changed, ended = {}, { expired = 0, invalid = 0 }
for _, id in ipairs(redis.call('ZRANGE', expiring, '-inf', now, 'BYSCORE', 'LIMIT', 0, ARGV[1])) do
  local ticket = read(id) or { id = id, broken = true, queue = queue }
  local how = catch_up(ticket)
  if how ~= '' then
    ended[how] = ended[how] + 1
    changed[#changed + 1] = id
  end
  redis.call('ZREM', expiring, id)
end
publish(changed)
local next_due = redis.call('ZRANGE', expiring, 0, 0, 'WITHSCORES')[2]
return { ended.expired, ended.invalid, next_due and math.max(0, next_due - now) or -1 }
