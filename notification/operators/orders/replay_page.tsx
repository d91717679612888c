import type { Context } from "hono";
import type { JSX } from "hono/jsx/jsx-runtime";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { pageAnswer, seeOther } from "@kenri/shared/console/answers.ts";
import { type Api, queryOf, type ShowPage } from "@kenri/shared/console/ask.ts";
import { formToken, leaveNote, readForm } from "@kenri/shared/console/forms.ts";
import { ConsolePage, type Site } from "@kenri/shared/console/layout.tsx";
import { SearchField } from "@kenri/shared/console/search.tsx";
import { type Signature, signatureIn, Signing } from "@kenri/shared/console/signing.tsx";
import { count } from "@kenri/shared/console/text.ts";
import { endpointsPath, replayPath } from "./links.tsx";
import type { ReplayOfAnswer } from "./replay.ts";

// Sending the webhooks of an endpoint again takes two steps: the first counts those of a range of
// time, the second asks who and why.

interface Range {
  endpoint_id: string;
  from: string;
  to: string;
  only: string;
}

const dayMs = 86_400_000;

function rangeIn(fields: URLSearchParams): Range {
  return {
    endpoint_id: fields.get("endpoint_id") ?? "",
    from: fields.get("from") ?? new Date(Date.now() - dayMs).toISOString(),
    to: fields.get("to") ?? new Date().toISOString(),
    only: fields.get("only") ?? "FAILED",
  };
}

export function replayPage(site: Site): ShowPage {
  return async (context, api) => {
    const [, query] = context.req.url.split("?", 2);
    const fields = new URLSearchParams(query);
    return await answer(context, api, site, rangeIn(fields), { isCounted: fields.has("from") });
  };
}

interface Step {
  isCounted: boolean;
  signature?: Signature;
  problem?: string;
}

async function answer(
  context: Context,
  api: Api,
  site: Site,
  range: Range,
  { isCounted, signature = {}, problem }: Step,
): Promise<Response> {
  const dryRun = { who: "nobody", reason: "a look", dry_run: true };
  const counted = isCounted ? await replayAll(api, range, dryRun) : undefined;
  return pageAnswer(
    context,
    <ConsolePage site={site} path={endpointsPath} title="Send again">
      <RangeForm range={range} />
      {counted?.replayed === 0 && <p class="empty">There are no such orders.</p>}
      {counted !== undefined && counted.replayed > 0 && (
        <ReplayForm
          {...{ range, signature, problem, token: formToken(context) }}
          what={`${counted.more ? "the first " : ""}${count(counted.replayed, "order")}`}
          caller={context.get("caller")?.name ?? ""}
        />
      )}
      <p>
        <a href={backTo(range)}>Back to the endpoint</a>
      </p>
    </ConsolePage>,
    problem ? 400 : 200,
  );
}

function backTo({ endpoint_id }: Range): string {
  return `${endpointsPath}${queryOf({ endpoint_id })}`;
}

function RangeForm({ range }: { range: Range }): JSX.Element {
  return (
    <form class="search" method="get" action={replayPath}>
      <input type="hidden" name="endpoint_id" value={range.endpoint_id} />
      <SearchField id="from" label="Made since" value={range.from} maxlength={40} />
      <SearchField id="to" label="Made before" value={range.to} maxlength={40} />
      <div>
        <label for="only">Which</label>
        <select id="only" name="only">
          <option value="FAILED" selected={range.only === "FAILED"}>failed for good</option>
          <option value="ALL" selected={range.only === "ALL"}>also those that succeeded</option>
        </select>
      </div>
      <button type="submit">Count</button>
    </form>
  );
}

interface FormParts {
  range: Range;
  what: string;
  signature: Signature;
  problem: string | undefined;
  caller: string;
  token: string;
}

function ReplayForm({ range, what, signature, problem, caller, token }: FormParts): JSX.Element {
  return (
    <form class="card stacked" method="post" action={replayPath}>
      <p>
        <b>{what}</b> will be sent again, with the same ids as before.
      </p>
      {problem && <p class="note bad" role="alert">{problem}</p>}
      <input type="hidden" name="token" value={token} />
      {Object.entries(range).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      <Signing caller={caller} signature={signature} why="Why are they sent again?" />
      <button type="submit">Send again</button>
    </form>
  );
}

export function replayNow(site: Site): ShowPage {
  return async (context, api) => {
    const form = await readForm(context);
    const [range, signature] = [rangeIn(form), signatureIn(form)];
    try {
      const { replayed, more } = await replayAll(api, range, signature);
      const left = more ? " More are left. Repeat this for the rest." : "";
      leaveNote(context, `${count(replayed, "order")} will be sent again.${left}`);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "BAD_REQUEST") throw error;
      return await answer(context, api, site, range, {
        ...{ isCounted: true, signature, problem: error.message },
      });
    }
    return seeOther(context, backTo(range));
  };
}

// One click sends again at most this many batches. Each is an operation of its own in the log.
const maxBatches = 50;

async function replayAll(
  api: Api,
  range: Range,
  fields: Signature & { dry_run?: boolean },
): Promise<{ replayed: number; more: boolean }> {
  let replayed = 0;
  let cursor: string | undefined;
  for (let batch = 0; batch < maxBatches; batch++) {
    const page = await api.post<ReplayOfAnswer>("/operations/notification/endpoints/replay", {
      ...range,
      ...fields,
      ...(cursor === undefined ? {} : { cursor }),
    });
    replayed += page.replayed;
    cursor = page.next_cursor;
    if (cursor === undefined) return { replayed, more: false };
  }
  return { replayed, more: true };
}
