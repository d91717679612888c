-- Leases entries of a stream to a consumer, those of expired leases first. Returns the time in
-- ms, and for each entry: its id, how often it was leased, who had it before, and its fields.
-- KEYS: the stream. ARGV: group, consumer, lease in ms, how many, whether to look for expired leases.
local stream, group, me = KEYS[1], ARGV[1], ARGV[2]
local lease, limit = tonumber(ARGV[3]), tonumber(ARGV[4])

-- The first event comes before the group, and a wiped server has neither.
if redis.pcall('XPENDING', stream, group).err then
  redis.call('XGROUP', 'CREATE', stream, group, '0', 'MKSTREAM')
end

local forgotten_ms = 3600000

local leased = {}
if ARGV[5] == '1' then
  -- Each process is a consumer of its own. Those that have ended are forgotten when they have nothing.
  for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', stream, group)) do
    local name, pending, idle = info[2], info[4], info[6]
    if pending == 0 and idle > forgotten_ms then
      redis.call('XGROUP', 'DELCONSUMER', stream, group, name)
    end
  end
  for _, pending in ipairs(redis.call('XPENDING', stream, group, 'IDLE', lease, '-', '+', limit)) do
    local id, before, times = pending[1], pending[2], pending[4]
    local entry = redis.call('XCLAIM', stream, group, me, lease, id)[1]
    if entry then
      leased[#leased + 1] = {id, times + 1, before, entry[2]}
    else -- it was deleted from the stream
      redis.call('XACK', stream, group, id)
    end
  end
end

local left = limit - #leased
if left > 0 then
  local read = redis.call('XREADGROUP', 'GROUP', group, me, 'COUNT', left, 'STREAMS', stream, '>')
  for _, entry in ipairs(read and read[1][2] or {}) do
    leased[#leased + 1] = {entry[1], 1, '', entry[2]}
  end
end
local time = redis.call('TIME')
return {time[1] * 1000 + math.floor(time[2] / 1000), leased}
