import type { SendBackAnswer } from "../operators/send_back.ts";
import type { Api } from "./ask.ts";
import type { Site } from "./layout.tsx";
import { count } from "./text.ts";

// Sends all selected dead letters back, through the API and page after page.

export interface Selection {
  layer: string;
  ids: string[];
  error: string | undefined; // selects all dead letters with this error
}

export function selectionIn(fields: URLSearchParams): Selection {
  return {
    layer: fields.get("layer") ?? "",
    ids: fields.getAll("id"),
    error: fields.get("error") ?? undefined,
  };
}

// One click sends back at most this many pages of this size.
const maxPages = 50;
const pageSize = 200;

export interface SentBack {
  counts: Record<string, number>;
  refusals: string[];
  more: boolean;
}

// Each page is an operation of its own in the log.
export async function sendAllBack(
  api: Api,
  { service }: Site,
  { layer, ids, error }: Selection,
  fields: { who?: string; reason?: string; dry_run?: boolean },
): Promise<SentBack> {
  const selected = error === undefined ? { ids } : { error, limit: pageSize };
  const sent: SentBack = { counts: {}, refusals: [], more: false };
  let cursor: string | undefined;
  for (let page = 0; page < maxPages; page++) {
    const answer = await api.post<SendBackAnswer>(`/operations/${service}/dead-letters/send-back`, {
      layer,
      ...selected,
      ...fields,
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

export function noteOf({ counts, refusals, more }: SentBack): string {
  const sent = counts["SENT_BACK"] ?? 0;
  const gone = counts["NOT_DEAD"] ?? 0;
  const [first] = refusals;
  return [
    `${count(sent, "dead letter")} sent back.`,
    gone > 0 && `${count(gone, "was", "were")} no longer dead.`,
    first && `${count(refusals.length, "was", "were")} refused, the first: ${first}.`,
    more && "More are left. Repeat this for the rest.",
  ].filter(Boolean).join(" ");
}
