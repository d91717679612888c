import type { Context } from "hono";
import type { JSX } from "hono/jsx/jsx-runtime";
import { ApiError } from "../http/errors.ts";
import { pageAnswer, seeOther } from "./answers.ts";
import { type Api, queryOf, type ShowPage } from "./ask.ts";
import { formToken, leaveNote, readForm } from "./forms.ts";
import { ConsolePage, type Site } from "./layout.tsx";
import { noteOf, type Selection, selectionIn, sendAllBack } from "./send_back.ts";
import { type Signature, signatureIn, Signing } from "./signing.tsx";
import { count } from "./text.ts";

// Sending dead letters back takes two steps: the first page shows how many, its form asks who and
// why.

export const deadLettersPath = "/console/dead-letters";
export const confirmPath = `${deadLettersPath}/send-back`;

export function confirmPage(site: Site): ShowPage {
  return async (context, api) => {
    const [, query] = context.req.url.split("?", 2);
    return await confirmAnswer(context, api, site, selectionIn(new URLSearchParams(query)), {});
  };
}

async function confirmAnswer(
  context: Context,
  api: Api,
  site: Site,
  selection: Selection,
  signature: Signature,
  problem?: string,
): Promise<Response> {
  const { layer, ids, error } = selection;
  const back = `${deadLettersPath}${queryOf({ layer })}`;
  const dryRun = ids.length === 0 && error === undefined
    ? undefined
    : await sendAllBack(api, site, selection, { who: "nobody", reason: "a look", dry_run: true });
  const number = dryRun?.counts["WOULD_BE_SENT_BACK"] ?? 0;
  return pageAnswer(
    context,
    <ConsolePage site={site} path={deadLettersPath} title="Send back">
      {number === 0
        ? (
          <p class="empty">
            {dryRun ? "These are no longer dead letters." : "No dead letter is selected."}
          </p>
        )
        : (
          <SendBackForm
            {...{ selection, number, signature, problem, token: formToken(context) }}
            caller={context.get("caller")?.name ?? ""}
            more={dryRun?.more ?? false}
          />
        )}
      <p>
        <a href={back}>{number === 0 ? "Back to the dead letters" : "Cancel"}</a>
      </p>
    </ConsolePage>,
    problem ? 400 : 200,
  );
}

interface FormParts {
  selection: Selection;
  number: number;
  more: boolean;
  signature: Signature;
  problem: string | undefined;
  caller: string; // empty if callers need no credential
  token: string;
}

function SendBackForm(parts: FormParts): JSX.Element {
  const { selection, number, more, signature, problem, caller, token } = parts;
  const { layer, ids, error } = selection;
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
      {more && <p>There are more. Repeat this for the rest.</p>}
      {problem && <p class="note bad" role="alert">{problem}</p>}
      <input type="hidden" name="token" value={token} />
      <input type="hidden" name="layer" value={layer} />
      {error !== undefined && <input type="hidden" name="error" value={error} />}
      {ids.map((id) => <input type="hidden" name="id" value={id} />)}
      <Signing caller={caller} signature={signature} why="Why will it succeed now?" />
      <button type="submit">Send back {what}</button>
    </form>
  );
}

export function sendBackNow(site: Site): ShowPage {
  return async (context, api) => {
    const form = await readForm(context);
    const selection = selectionIn(form);
    const signature = signatureIn(form);
    try {
      leaveNote(context, noteOf(await sendAllBack(api, site, selection, signature)));
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "BAD_REQUEST") throw error;
      return await confirmAnswer(context, api, site, selection, signature, error.message);
    }
    return seeOther(context, `${deadLettersPath}${queryOf({ layer: selection.layer })}`);
  };
}
