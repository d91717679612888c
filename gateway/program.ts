import type { Service } from "@kenri/shared/process/program.ts";
import { settings } from "./derived.ts";
import { looks } from "./operators/looks.ts";

export const program: Service = {
  name: "gateway",
  port: 8000,
  usesNats: true,
  servers: [
    ...["GATEWAY_ISSUER", "GATEWAY_ISSUER_SERVERS"],
    ...["GATEWAY_ACCOUNT_URL", "GATEWAY_ENTITLEMENT_URL"],
    ...["GATEWAY_NOTIFICATION_URL", "GATEWAY_MATCHMAKING_URL"],
  ],
  dev: {
    settings: { GATEWAY_CLIENT_ID: "kenri" },
    urls: {
      GATEWAY_PUBLIC_URL: "gateway",
      GATEWAY_ACCOUNT_URL: "account",
      GATEWAY_ENTITLEMENT_URL: "entitlement",
      GATEWAY_NOTIFICATION_URL: "notification",
      GATEWAY_MATCHMAKING_URL: "matchmaking",
    },
    page: "/",
  },
  settings,
  looks,
};
