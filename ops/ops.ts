// deno task ops: the command line for operators. It asks the services over HTTP.
import * as services from "@kenri/services.ts";
import type { Service } from "@kenri/shared/process/program.ts";
import { main } from "./main.ts";

const listed = Object.values<Service>(services).flatMap(({ name, port, looks }) =>
  looks ? [{ name, port, looks }] : []
);

Deno.exit(await main(Deno.args, listed));
