import {
  changeFields,
  changeHelp,
  changeOptions,
  moment,
  type OwnCommand,
  text,
  UsageError,
} from "@kenri/shared/ops/command.ts";
import { changes } from "@kenri/shared/ops/service_api.ts";
import { count, time } from "@kenri/shared/ops/text.ts";
import type { ReplayOfAnswer, ReplayOfBody } from "./replay.ts";

const route = changes<ReplayOfBody, ReplayOfAnswer>("endpoints/replay");

export const endpointsReplay: OwnCommand = {
  usage: "endpoints replay ENDPOINT_ID --from TIME [--to TIME] [--type TYPE] [--all]",
  words: 1,
  summary: "Send the webhooks of an endpoint again that failed for good, or all of a time range",
  options: {
    from: { type: "string" },
    to: { type: "string" },
    type: { type: "string" },
    all: { type: "boolean", default: false },
    ...changeOptions,
  },
  help: `
  --from TIME     orders made since then: a time such as 2026-01-02T03:04:05Z, or an age such as 90m
  --to TIME       orders made before then; default: now
  --type TYPE     only those of events of this type, such as EntitlementGranted
  --all           also those that succeeded, for a receiver that lost what it had${changeHelp()}

Each is sent with the same id as before, so the receiver can remove what it has. While the endpoint is
not ACTIVE, they are parked. Orders are kept for 30 days after they ended. The command works in batches:
it may be interrupted, and what it has sent again since is not sent twice if it is repeated without
--all. The owner of the endpoint can do the same with POST /v1/endpoints/{endpoint_id}/replay.`,
  async run(service, call) {
    const [endpoint_id] = call.positionals;
    const from = text(call.values["from"]);
    if (endpoint_id === undefined) throw new UsageError("the ENDPOINT_ID is required");
    if (from === undefined) throw new UsageError("--from is required");
    const type = text(call.values["type"]);
    const range = {
      endpoint_id,
      from: moment("from", from),
      to: moment("to", text(call.values["to"]) ?? "0s"),
      only: call.values["all"] === true ? "ALL" as const : "FAILED" as const,
      ...(type === undefined ? {} : { event_types: [type] }),
      ...changeFields(call),
    };
    let replayed = 0;
    for await (const page of service.pages(route, () => range)) replayed += page.replayed;
    const done = range.dry_run ? "would be sent again" : "will be sent again";
    return {
      problem: false,
      json: { ...range, replayed },
      text: `${count(replayed, "order")}, made from ${time(range.from)} to ${
        time(range.to)
      }, ${done}.`,
    };
  },
};
