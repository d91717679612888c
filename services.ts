// All services. A new one is a folder with a program.ts, and a line here; `deno task services` writes
// what follows from that (docs/new-service.md). Nothing here imports a package, because the launcher
// reads the list before any sandbox exists.
export { program as entitlement } from "./entitlement/program.ts";
export { program as notification } from "./notification/program.ts";
export { program as sender } from "./sender/program.ts";
export { program as account } from "./account/program.ts";
export { program as gateway } from "./gateway/program.ts";
export { program as matchmaking } from "./matchmaking/program.ts";
