export function banner(entitlement: string, notification: string): string {
  return `
  entitlement   ${entitlement}   (${entitlement}/openapi.json)
  notification  ${notification}   (${notification}/debug/notification/inbox/ann)

  Grant a right and watch it arrive:

    curl ${entitlement}/v1/entitlements/grants \\
      -H 'Idempotency-Key: purchase-1' -H 'Content-Type: application/json' \\
      -d '{"user_id":"ann","stock_keeping_unit":"book","reason":"purchase","purchase_id":"purchase-1"}'
    curl ${notification}/debug/notification/inbox/ann

  What flows, what waits, what was given up: ${entitlement}/console,
  ${notification}/console, or deno task ops status

  Ctrl-C stops everything.
`;
}
