-- What the scripts of matchmaking share; each of them begins with this text. All of them get these keys
-- first, and then their own. The keys of tickets can't be given, because most scripts find out only then
-- which tickets these are. All keys of a mode have its hash tag, so they are on one node of a cluster.
local tickets, expiring, events, changes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

-- Whatever clocks the services have, this one decides.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local known = { QUEUED = true, MATCHED = true, CANCELLED = true, EXPIRED = true, INVALID = true }

-- Nil if there is none. A ticket without an owner, a state or its times is broken.
local function read(id)
  local values = redis.pcall('HMGET', tickets .. id, 'user_id', 'status', 'created_ms', 'expires_ms',
    'queue', 'trace_id', 'traceparent')
  if values.err then return { id = id, broken = true } end
  local ticket = {
    id = id,
    user_id = values[1],
    status = values[2],
    created_ms = tonumber(values[3] or ''),
    expires_ms = tonumber(values[4] or ''),
    queue = values[5],
    trace_id = values[6],
    traceparent = values[7],
  }
  if not (ticket.user_id or ticket.status or ticket.created_ms or ticket.expires_ms) then return nil end
  ticket.broken = not (ticket.user_id and ticket.created_ms and ticket.expires_ms and known[ticket.status])
  return ticket
end

local function announce(ticket, event_type, ...)
  redis.call('XADD', events, '*', 'event_type', event_type, 'ticket_id', ticket.id,
    'user_id', ticket.user_id or '', 'occurred_ms', now, 'waited_ms', now - (ticket.created_ms or now),
    'trace_id', ticket.trace_id or '', 'traceparent', ticket.traceparent or '', ...)
end

local function leave(ticket)
  if ticket.queue then redis.call('ZREM', ticket.queue, ticket.id) end
  redis.call('ZREM', expiring, ticket.id)
end

-- The attributes are of no use any more, and may be large.
local function finish(ticket, status)
  leave(ticket)
  redis.call('HSET', tickets .. ticket.id, 'status', status)
  redis.call('HDEL', tickets .. ticket.id, 'attributes')
  ticket.status = status
end

local function expire(ticket)
  finish(ticket, 'EXPIRED')
  announce(ticket, 'TicketExpired')
end

-- Its key may be missing, or be of another kind. What damaged it may have removed its time to live.
local function invalidate(ticket)
  leave(ticket)
  local key = tickets .. ticket.id
  if redis.call('EXISTS', key) == 1 then
    redis.pcall('HSET', key, 'status', 'INVALID')
    if redis.call('PTTL', key) < 0 then redis.call('PEXPIRE', key, 600000) end
  end
  ticket.status = 'INVALID'
  announce(ticket, 'TicketInvalid')
end

-- What has happened to a ticket that no worker has looked at since. Returns how it ended by that, or ''.
local function catch_up(ticket)
  if ticket.broken and ticket.status ~= 'INVALID' then
    invalidate(ticket)
    return 'invalid'
  elseif ticket.status == 'QUEUED' and ticket.expires_ms <= now then
    expire(ticket)
    return 'expired'
  end
  return ''
end

-- Tells those who wait for a change.
local function publish(ids)
  if #ids > 0 then redis.call('PUBLISH', changes, table.concat(ids, ' ')) end
end

local function shown(ticket, ended)
  if ended ~= '' then publish({ ticket.id }) end
  local more = redis.pcall('HMGET', tickets .. ticket.id, 'match_id', 'peers', 'matched_ms')
  return { 'found', ended, ticket.id, ticket.status, ticket.expires_ms or now,
    more[1] or '', more[2] or '', more[3] or '' }
end
