-- Moves dead letters back to their stream, as new entries, and records who did it. Returns the ids of
-- those that were still dead letters.
-- KEYS: the stream, the stream of dead letters, the log of operations. ARGV: the id of the operation, its
-- layer, who, why, how many operations are kept, and the ids.
local stream, dead, operations = KEYS[1], KEYS[2], KEYS[3]
local moved, items = {}, {}
for at = 6, #ARGV do
  local id = ARGV[at]
  local entry = redis.call('XRANGE', dead, id, id)[1]
  if entry then
    local kept, item = {}, { entry = id }
    for field = 1, #entry[2], 2 do
      local name, value = entry[2][field], entry[2][field + 1]
      if name == 'dead_error' then item.error = value end
      if name == 'dead_attempts' then item.attempts = tonumber(value) end
      if string.sub(name, 1, 5) ~= 'dead_' then
        kept[#kept + 1] = name
        kept[#kept + 1] = value
      end
    end
    redis.call('XADD', stream, '*', unpack(kept))
    redis.call('XDEL', dead, id)
    moved[#moved + 1] = id
    items[#items + 1] = item
  end
end
if #moved > 0 then
  redis.call('XADD', operations, 'MAXLEN', '~', ARGV[5], '*', 'operation_id', ARGV[1], 'kind', 'SEND_BACK',
    'layer', ARGV[2], 'who', ARGV[3], 'reason', ARGV[4], 'items', cjson.encode(items))
end
return moved
