export function banner(
  entitlement: string,
  notification: string,
  urlsFile: string | undefined,
): string {
  const servers = urlsFile === undefined ? "" : `
  URLs and passwords of PostgreSQL and NATS are in a file that only you can read:

    (. ${quoted(urlsFile)}; psql entitlement)
`;
  return `
  entitlement   ${entitlement}   (${entitlement}/openapi.json)
  notification  ${notification}   (${notification}/debug/notification/inbox/ann)

  Grant an entitlement and see its notification:

    curl ${entitlement}/v1/entitlements/grants \\
      -H 'Idempotency-Key: purchase-1' -H 'Content-Type: application/json' \\
      -d '{"user_id":"ann","stock_keeping_unit":"book","reason":"purchase","purchase_id":"purchase-1"}'
    curl ${notification}/debug/notification/inbox/ann

  Backlog, dead letters and single events: ${entitlement}/console and
  ${notification}/console, or deno task ops status
${servers}
  Ctrl-C stops everything.
`;
}

function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
