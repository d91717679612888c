/** The first message of a nats-server on every connection; only the fields used here. */
interface Info {
  server_name: string;
  jetstream?: boolean;
  auth_required?: boolean;
  tls_required?: boolean;
}

/** The credentials with which a client connects. */
export interface Credentials {
  user: string;
  pass: string;
}

/** Whether the server of this name listens here, and its JetStream answers a request. */
export async function jetStreamAnswers(
  port: number,
  serverName: string,
  credentials: Credentials | undefined,
): Promise<boolean> {
  let connection: Deno.TcpConn;
  try {
    connection = await Deno.connect({ hostname: "127.0.0.1", port });
  } catch {
    return false;
  }
  // Another program on this port could stay silent.
  const timeout = setTimeout(() => connection.close(), 1_000);
  try {
    return await askJetStream(connection, serverName, credentials);
  } catch {
    return false;
  } finally {
    clearTimeout(timeout);
    try {
      connection.close();
    } catch { /* The timeout was first. */ }
  }
}

/** Three lines of the protocol are enough, and the client library would reconnect. */
async function askJetStream(
  connection: Deno.TcpConn,
  serverName: string,
  credentials: Credentials | undefined,
): Promise<boolean> {
  const greeting = await readUntil(connection, /^INFO (\{.*\})\s*\r\n/);
  const info: Info = JSON.parse(greeting);
  if (info.server_name !== serverName || !info.jetstream) return false;
  if (info.tls_required || (info.auth_required && !credentials)) return true;
  const hello = JSON.stringify({ verbose: false, pedantic: false, ...credentials });
  await connection.write(new TextEncoder().encode(
    `CONNECT ${hello}\r\n` +
      "SUB _INBOX.ready 1\r\nPUB $JS.API.INFO _INBOX.ready 0\r\n\r\n",
  ));
  const answer = await readUntil(connection, /MSG _INBOX\.ready 1 \d+\r\n(.+)\r\n/);
  return !answer.includes('"error"');
}

async function readUntil(connection: Deno.TcpConn, pattern: RegExp): Promise<string> {
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(16_384);
  let text = "";
  for (;;) {
    const found = text.match(pattern)?.[1];
    if (found) return found;
    const size = await connection.read(buffer);
    if (size === null) throw new Error("The connection was closed");
    text += decoder.decode(buffer.subarray(0, size), { stream: true });
  }
}
