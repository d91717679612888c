import type { Settings } from "./settings.ts";

export function banner(settings: Settings): string {
  const url = (service: string) =>
    `http://${settings[`${service}_HTTP_HOST`]}:${settings[`${service}_HTTP_PORT`]}`;
  const entitlement = url("ENTITLEMENT");
  const notification = url("NOTIFICATION");
  return `
  entitlement   ${entitlement}   (${entitlement}/openapi.json)
  notification  ${notification}   (${notification}/debug/notification/inbox/ann)

  Grant a right and watch it arrive:

    curl ${entitlement}/v1/entitlements/grants \\
      -H 'Idempotency-Key: purchase-1' -H 'Content-Type: application/json' \\
      -d '{"user_id":"ann","stock_keeping_unit":"book","reason":"purchase","purchase_id":"purchase-1"}'
    curl ${notification}/debug/notification/inbox/ann

  Ctrl-C stops everything.
`;
}
