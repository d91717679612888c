// Services that only tests start. `deno task services` writes what their descriptors import.
export { program as reminders } from "./reminders/program.ts";
