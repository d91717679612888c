import { type OwnCommand, text, UsageError, wholeNumber } from "@kenri/shared/ops/command.ts";
import { reads } from "@kenri/shared/ops/service_api.ts";
import { ageOf, ago, list, table, time } from "@kenri/shared/ops/text.ts";
import type { AttemptLooks, AttemptsQuery } from "./attempts.ts";
import { attemptTable } from "./commands.ts";
import type { EndpointLook, EndpointLooks, EndpointsQuery } from "./endpoints.ts";

// The commands of `ops` for endpoints.

const endpointsRoute = reads<EndpointsQuery, EndpointLooks>("endpoints");
const attemptsRoute = reads<AttemptsQuery, AttemptLooks>("attempts");

const isUnwell = ({ state }: EndpointLook) => state !== "ACTIVE" && state !== "PAUSED";

export const endpoints: OwnCommand = {
  usage: "endpoints [--state STATE] [--caller NAME] [--limit N]",
  words: 0,
  summary: "List the endpoints with their health, and what is parked for them",
  options: { state: { type: "string" }, caller: { type: "string" }, limit: { type: "string" } },
  help: `
  --state STATE   only ACTIVE, PAUSED, FAILING, DISABLED or GONE ones
  --caller NAME   only those of a caller
  --limit N       at most N; default: 50

A FAILING endpoint is probed until it answers; its orders are parked and lose no attempt. DISABLED and
GONE ones wait for their owner to resume them. Exit code 1 if one of the list is in such a state.`,
  async run(service, call) {
    const limit = wholeNumber(call, "limit", 200) ?? 50;
    const [state, caller] = [text(call.values["state"]), text(call.values["caller"])];
    const query = { limit, state, caller } as EndpointsQuery;
    const { endpoints, next_cursor } = await service.ask(endpointsRoute, query);
    return {
      problem: endpoints.some(isUnwell),
      json: { endpoints },
      text: endpoints.length === 0 ? "There are no such endpoints." : [
        table(endpoints, {
          "ENDPOINT_ID": ({ endpoint_id }) => endpoint_id,
          "CALLER": ({ caller }) => caller || "-",
          "TO": ({ origin }) => origin,
          "STATE": stateOf,
          "SINCE": ({ state_since }) => ageOf(state_since),
          "PARKED": ({ parked }) => parked,
          "LAST SUCCESS": ({ last_success_at }) => ago(last_success_at),
          "LAST REASON": ({ last_reason }) => last_reason,
        }),
        ...(next_cursor === undefined ? [] : ["… and more: use --limit"]),
      ].join("\n"),
    };
  },
};

function stateOf({ state, is_draining }: EndpointLook): string {
  return is_draining ? `${state}, sending what was parked` : state;
}

export const endpointsShow: OwnCommand = {
  usage: "endpoints show ENDPOINT_ID [--limit N]",
  words: 1,
  summary: "Show one endpoint, and the last attempts to send to it",
  options: { limit: { type: "string" } },
  help: `
  --limit N       at most N attempts; default: 20

Exit code 1 if it is FAILING, DISABLED or GONE, or if there is none with this id. --json shows the
headers of each request and answer, and the first 4 KiB of the answer.`,
  async run(service, call) {
    const [endpoint_id] = call.positionals;
    if (endpoint_id === undefined) throw new UsageError("the ENDPOINT_ID is required");
    const limit = wholeNumber(call, "limit", 200) ?? 20;
    const { endpoints: [endpoint] } = await service.ask(endpointsRoute, { endpoint_id });
    if (!endpoint) return { problem: true, json: null, text: "There is no such endpoint." };
    const { attempts } = await service.ask(attemptsRoute, { endpoint_id, limit });
    return {
      problem: isUnwell(endpoint),
      json: { endpoint, attempts },
      text: [
        factsOf(endpoint),
        ...(attempts.length > 0 ? ["", attemptTable(attempts)] : []),
      ].join("\n"),
    };
  },
};

function factsOf(endpoint: EndpointLook): string {
  const { event_types, next_probe_at, oldest_parked_at, parked } = endpoint;
  return list({
    endpoint: endpoint.endpoint_id,
    caller: endpoint.caller || undefined,
    to: endpoint.origin,
    description: endpoint.description ?? undefined,
    events: event_types === null ? "all" : event_types.join(", "),
    user: endpoint.user_id ?? undefined,
    ordering: endpoint.ordering,
    "at once": endpoint.at_once,
    state: `${stateOf(endpoint)}, since ${time(endpoint.state_since)}`,
    "failures in a row": endpoint.failures,
    "next probe": next_probe_at === null ? undefined : time(next_probe_at),
    "last success": ago(endpoint.last_success_at),
    "last failure": ago(endpoint.last_failure_at),
    "last reason": endpoint.last_reason ?? undefined,
    parked: oldest_parked_at === null
      ? parked
      : `${parked}, the oldest ${ageOf(oldest_parked_at)} old`,
  });
}
