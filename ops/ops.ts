// deno task ops: the command line for operators. It asks the services over HTTP.
import * as programs from "@kenri/services.ts";
import { main } from "./main.ts";
import type { Listed } from "./service.ts";

const services = Object.values(programs).flatMap(({ name, http, looks }): Listed[] =>
  http && looks ? [{ name, port: http.port, looks }] : []
);

Deno.exit(await main(Deno.args, services));
