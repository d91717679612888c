import type { Service } from "@kenri/shared/process/program.ts";
import { settings } from "./derived.ts";

export const program: Service = {
  name: "sender",
  port: 8084,
  outside: { alsoTo: "SENDER_ALLOW_ADDRESSES" },
  dev: {
    settings: { SENDER_ALLOW_ADDRESSES: "127.0.0.1", SENDER_PLAIN_HTTP: "true" },
    page: "/livez",
  },
  settings,
};
