// `deno task ops` with one more service in the list.
import { main } from "../../ops/main.ts";
import type { Listed } from "../../ops/service.ts";
import * as services from "../../services.ts";
import type { Service } from "../../shared/process/program.ts";
import { listed } from "./parcel_looks.ts";

const own = Object.values<Service>(services).flatMap(({ name, port, looks }): Listed[] =>
  looks ? [{ name, port, looks }] : []
);

Deno.exit(await main(Deno.args, [...own, listed]));
