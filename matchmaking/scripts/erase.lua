-- Erases a user from a mode, and records that somebody was erased. ARGV: user, pseudonym, the id of the
-- operation, who, why, how many operations are kept, and the dead letters that name the user. Returns how
-- many tickets and dead letters were erased.
local of_user, joins, dead, operations = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local user_id, pseudonym = ARGV[1], ARGV[2]

-- Also of tickets that have just ended: their user waits for nothing any more.
local erased = redis.call('ZRANGE', of_user, 0, -1)
for _, id in ipairs(erased) do
  leave(read(id) or { id = id })
  redis.call('DEL', tickets .. id)
end
redis.call('DEL', of_user, joins)
publish(erased)

-- A dead letter of another user stays, without the name of this one.
local function without_user(fields)
  for at = 1, #fields, 2 do
    if fields[at] == 'user_id' and fields[at + 1] == user_id then return nil end
    if fields[at] == 'peers' then
      local peers = cjson.decode(fields[at + 1])
      for peer = 1, #peers do
        if peers[peer] == user_id then peers[peer] = pseudonym end
      end
      fields[at + 1] = cjson.encode(peers)
    end
  end
  return fields
end

local dead_erased = 0
for at = 7, #ARGV do
  local entry = redis.call('XRANGE', dead, ARGV[at], ARGV[at])[1]
  if entry then
    local fields = without_user(entry[2])
    if fields then redis.call('XADD', dead, '*', unpack(fields)) end
    redis.call('XDEL', dead, ARGV[at])
    dead_erased = dead_erased + 1
  end
end

if #erased + dead_erased > 0 then
  local items = cjson.encode({ { tickets = #erased, dead_events = dead_erased } })
  redis.call('XADD', operations, 'MAXLEN', '~', ARGV[6], '*', 'operation_id', ARGV[3], 'kind', 'ERASE_USER',
    'layer', 'user', 'who', ARGV[4], 'reason', ARGV[5], 'items', items)
end
return { #erased, dead_erased }
