/** What Redis answers. An error is thrown. */
export type Reply = string | number | null | Reply[];

const TIMEOUT_MS = 10_000; // for another program on this port, which stays silent

/**
 * Sends a command over a connection of its own, in the logical database that the url names. It shares
 * no code with the client of the services, so tests see from outside what that did.
 */
export async function redisCommand(url: string, ...command: (string | number)[]): Promise<Reply> {
  const { hostname, port, username, password, pathname } = new URL(url);
  const user = decodeURIComponent(username) || "default";
  const commands = [
    ...(password ? [["AUTH", user, decodeURIComponent(password)]] : []),
    ...(pathname.length > 1 ? [["SELECT", pathname.slice(1)]] : []),
    command,
  ];
  const connection = await Deno.connect({ hostname, port: Number(port || 6379) });
  const timeout = setTimeout(() => connection.close(), TIMEOUT_MS);
  try {
    const bytes = new TextEncoder().encode(commands.map(written).join(""));
    for (let sent = 0; sent < bytes.length;) sent += await connection.write(bytes.subarray(sent));
    const take = takerFrom(connection);
    let reply: Reply = null;
    for (const _ of commands) reply = await readReply(take);
    return reply;
  } finally {
    clearTimeout(timeout);
    try {
      connection.close();
    } catch { /* The timeout was first. */ }
  }
}

function written(command: (string | number)[]): string {
  const parts = command.map((part) =>
    `$${new TextEncoder().encode(`${part}`).length}\r\n${part}\r\n`
  );
  return `*${parts.length}\r\n${parts.join("")}`;
}

/** Takes so many bytes and the end of the line after them, or what is left of the line. */
type Take = (size?: number) => Promise<string>;

function takerFrom(connection: Deno.TcpConn): Take {
  const buffer = new Uint8Array(65_536);
  let rest = new Uint8Array();
  return async (size) => {
    for (;;) {
      const end = size ?? rest.indexOf(13);
      if (end >= 0 && rest.length >= end + 2) {
        const text = new TextDecoder().decode(rest.subarray(0, end));
        rest = rest.subarray(end + 2);
        return text;
      }
      const count = await connection.read(buffer);
      if (count === null) throw new Error("Redis closed the connection");
      rest = new Uint8Array([...rest, ...buffer.subarray(0, count)]);
    }
  };
}

async function readReply(take: Take): Promise<Reply> {
  const line = await take();
  const [kind, text] = [line[0], line.slice(1)];
  if (kind === "+") return text;
  if (kind === "-") throw new Error(text);
  const number = Number(text);
  if (kind === ":") return number;
  if (number < 0) return null;
  if (kind === "$") return await take(number);
  const replies: Reply[] = [];
  while (replies.length < number) replies.push(await readReply(take));
  return replies;
}
