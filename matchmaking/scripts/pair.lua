-- Pairs the oldest tickets of a queue. A ticket that stays alone goes back to its place. ARGV: how many
-- tickets to look at, the bucket of the queue. Returns how many it looked at, how long each matched ticket
-- had waited in ms, and how many were expired and invalid.
local queue, buckets = KEYS[5], KEYS[6]

-- A UUID that is the same for the same two tickets.
local function match_of(one, other)
  local hex = redis.sha1hex(one.id .. other.id)
  return string.format('%s-%s-8%s-a%s-%s', string.sub(hex, 1, 8), string.sub(hex, 9, 12),
    string.sub(hex, 13, 15), string.sub(hex, 16, 18), string.sub(hex, 19, 30))
end

local changed, matched, waits = {}, {}, {}
local function match(ticket, peer, match_id)
  local peers = cjson.encode({ peer.user_id })
  redis.call('HSET', tickets .. ticket.id, 'status', 'MATCHED', 'match_id', match_id, 'peers', peers,
    'matched_ms', now)
  announce(ticket, 'MatchFound', 'match_id', match_id, 'peers', peers)
  matched[#matched + 1] = ticket.id
  waits[#waits + 1] = now - ticket.created_ms
end

local popped = redis.call('ZPOPMIN', queue, ARGV[1])
local alone, first = {}, 1 -- all of one user, because two users would have been matched
local ended = { expired = 0, invalid = 0 }
for at = 1, #popped, 2 do
  local ticket = read(popped[at]) or { id = popped[at], broken = true }
  local how = catch_up(ticket)
  if how ~= '' then
    ended[how] = ended[how] + 1
    changed[#changed + 1] = ticket.id
  elseif ticket.status == 'QUEUED' then
    local peer = alone[first]
    if peer and peer.user_id ~= ticket.user_id then
      first = first + 1
      local match_id = match_of(peer, ticket)
      match(peer, ticket, match_id)
      match(ticket, peer, match_id)
    else
      ticket.score = popped[at + 1]
      alone[#alone + 1] = ticket
    end
  end
end
for at = first, #alone do redis.call('ZADD', queue, alone[at].score, alone[at].id) end

if ARGV[2] ~= '' and redis.call('EXISTS', queue) == 0 then redis.call('SREM', buckets, ARGV[2]) end
if #matched > 0 then redis.call('ZREM', expiring, unpack(matched)) end
publish(changed)
publish(matched)
return { #popped / 2, waits, ended.expired, ended.invalid }
