-- How a ticket stands, for its owner. ARGV: ticket, user.
local ticket = read(ARGV[1])
if not ticket or not ticket.user_id then return { 'missing' } end
if ticket.user_id ~= ARGV[2] then return { 'foreign' } end
return shown(ticket, catch_up(ticket))
