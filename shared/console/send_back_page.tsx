import type { Context } from "hono";
import type { JSX } from "hono/jsx/jsx-runtime";
import { ApiError } from "../http/errors.ts";
import { pageAnswer, seeOther } from "./answers.ts";
import { type Api, queryOf } from "./ask.ts";
import type { ShowPage } from "./console.tsx";
import { formToken, leaveNote, readForm } from "./forms.ts";
import { ConsolePage, type Site } from "./layout.tsx";
import { count } from "./text.ts";

// Sending back in two steps: first how many that would be, then who and why.

export const deadLettersPath = "/console/dead-letters";
export const confirmPath = `${deadLettersPath}/send-back`;

// So many pages of 200 go back by one click.
const maxPages = 50;
const pageSize = 200;

interface Wanted {
  layer: string;
  ids: string[];
  error: string | undefined; // all of it
}

interface Answer {
  dead_letters: { id: string; outcome: string; why?: string }[];
  next_cursor?: string;
}

interface Signed {
  who?: string;
  reason?: string;
}

export function confirmPage(site: Site): ShowPage {
  return async (context, api) => {
    const [, query] = context.req.url.split("?", 2);
    return await askFor(context, api, site, wantedOf(new URLSearchParams(query)), {});
  };
}

async function askFor(
  context: Context,
  api: Api,
  site: Site,
  wanted: Wanted,
  signed: Signed,
  problem?: string,
): Promise<Response> {
  const { layer, ids, error } = wanted;
  const back = `${deadLettersPath}${queryOf({ layer })}`;
  const tried = ids.length === 0 && error === undefined
    ? undefined
    : await sendAll(api, site, wanted, { who: "nobody", reason: "a look", dry_run: true });
  const number = tried?.counts["WOULD_BE_SENT_BACK"] ?? 0;
  return pageAnswer(
    context,
    <ConsolePage site={site} path={deadLettersPath} title="Send back">
      {number === 0
        ? (
          <p class="empty">
            {tried ? "There is no such dead letter any more." : "None is chosen."}
          </p>
        )
        : (
          <SendBackForm
            {...{ wanted, number, signed, problem, token: formToken(context) }}
            caller={context.get("caller")?.name ?? ""}
            more={tried?.more ?? false}
          />
        )}
      <p>
        <a href={back}>Back without a change</a>
      </p>
    </ConsolePage>,
    problem ? 400 : 200,
  );
}

interface FormParts {
  wanted: Wanted;
  number: number;
  more: boolean;
  signed: Signed;
  problem: string | undefined;
  caller: string; // empty where nobody has to sign in
  token: string;
}

function SendBackForm(parts: FormParts): JSX.Element {
  const { wanted: { layer, ids, error }, number, more, signed, problem, caller, token } = parts;
  const what = count(number, "dead letter");
  return (
    <form class="card stacked" method="post" action={confirmPath}>
      <p>
        <b>{more ? "The first " : ""}{what}</b> of the layer {layer} will be sent back
        {error === undefined ? "." : (
          <>
            : all with the error <q class="error">{error}</q>
          </>
        )}
      </p>
      {more && <p>More than that are there: repeat it for the rest.</p>}
      {problem && <p class="note bad" role="alert">{problem}</p>}
      <input type="hidden" name="token" value={token} />
      <input type="hidden" name="layer" value={layer} />
      {error !== undefined && <input type="hidden" name="error" value={error} />}
      {ids.map((id) => <input type="hidden" name="id" value={id} />)}
      {caller === "" ? <Who said={signed.who ?? ""} /> : (
        <p>
          You are <b>{caller}</b>.
        </p>
      )}
      <label for="reason">Why may it succeed now?</label>
      <input
        id="reason"
        name="reason"
        value={signed.reason ?? ""}
        required
        maxlength={255}
        autocomplete="off"
      />
      <p class="muted">Both are kept in the record of operations.</p>
      <button type="submit">Send back {what}</button>
    </form>
  );
}

function Who({ said }: { said: string }): JSX.Element {
  return (
    <>
      <label for="who">Who are you?</label>
      <input
        id="who"
        name="who"
        value={said}
        required
        maxlength={255}
        autocomplete="username"
      />
    </>
  );
}

export function sendBackNow(site: Site): ShowPage {
  return async (context, api) => {
    const form = await readForm(context);
    const wanted = wantedOf(form);
    const signed = { who: form.get("who") ?? "", reason: form.get("reason") ?? "" };
    try {
      const { counts, refusals, more } = await sendAll(api, site, wanted, signed);
      leaveNote(context, noteOf(counts, refusals, more));
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "BAD_REQUEST") throw error;
      return await askFor(context, api, site, wanted, signed, error.message);
    }
    return seeOther(context, `${deadLettersPath}${queryOf({ layer: wanted.layer })}`);
  };
}

function wantedOf(fields: URLSearchParams): Wanted {
  return {
    layer: fields.get("layer") ?? "",
    ids: fields.getAll("id"),
    error: fields.get("error") ?? undefined,
  };
}

interface Sent {
  counts: Record<string, number>;
  refusals: string[];
  more: boolean;
}

// Page after page, as the API takes them: each is an operation of its own in the record.
async function sendAll(
  api: Api,
  { service }: Site,
  { layer, ids, error }: Wanted,
  signed: Signed & { dry_run?: boolean },
): Promise<Sent> {
  const chosen = error === undefined ? { ids } : { error, limit: pageSize };
  const sent: Sent = { counts: {}, refusals: [], more: false };
  let cursor: string | undefined;
  for (let page = 0; page < maxPages; page++) {
    const answer = await api.post<Answer>(`/operations/${service}/dead-letters/send-back`, {
      layer,
      ...chosen,
      ...signed,
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const { id, outcome, why } of answer.dead_letters) {
      sent.counts[outcome] = (sent.counts[outcome] ?? 0) + 1;
      if (why !== undefined) sent.refusals.push(`${id}: ${why}`);
    }
    cursor = answer.next_cursor;
    if (cursor === undefined) return sent;
  }
  return { ...sent, more: true };
}

function noteOf(counts: Record<string, number>, refusals: string[], more: boolean): string {
  const sent = counts["SENT_BACK"] ?? 0;
  const gone = counts["NOT_DEAD"] ?? 0;
  const [first] = refusals;
  return [
    `${count(sent, "dead letter")} sent back.`,
    gone > 0 && `${count(gone, "was", "were")} none any more.`,
    first && `${count(refusals.length, "was", "were")} refused, the first as ${first}.`,
    more && "More are left: repeat it for the rest.",
  ].filter(Boolean).join(" ");
}
