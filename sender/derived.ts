// Written by `deno task services`; do not edit.
export const settings: readonly string[] = [
  "ACCESS_TOKENS",
  "SENDER_ALLOW_ADDRESSES",
  "SENDER_HTTP_HOST",
  "SENDER_HTTP_PORT",
  "SENDER_PLAIN_HTTP",
  "SENDER_PORTS",
  "SENDER_TOKEN",
  "SHUTDOWN_GRACE",
];
