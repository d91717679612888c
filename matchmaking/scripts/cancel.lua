-- Ends a ticket that waits, and says how it stands. ARGV: ticket, user.
local ticket = read(ARGV[1])
if not ticket or not ticket.user_id then return { 'missing' } end
if ticket.user_id ~= ARGV[2] then return { 'foreign' } end
local ended = catch_up(ticket)
if ticket.status == 'QUEUED' then
  finish(ticket, 'CANCELLED')
  ended = 'cancelled'
end
return shown(ticket, ended)
