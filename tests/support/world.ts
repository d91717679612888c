// Receivers in the process of the test, which answer as it wants.
import type { SendAnswer, SendFailure } from "../../proto/send.ts";

export interface Sent {
  host: string;
  id: string; // the webhook-id
  body: { type: string; data: { user_id: string; stock_keeping_unit: string; version: number } };
}

// A number is the status of an answer.
type Said = number | SendFailure | Promise<number | SendFailure>;

/** Receivers by the name of their host. Those without a rule answer 200. */
export class World {
  readonly sent: Sent[] = []; // in the order in which they were asked for
  readonly rules = new Map<string, (sent: Sent) => Said>();

  to(host: string): Sent[] {
    return this.sent.filter((sent) => sent.host === host);
  }

  readonly sender = {
    check: () => Promise.resolve(undefined),
    send: async (
      { url, headers, body }: { url: string; headers: Record<string, string>; body: string },
    ): Promise<SendAnswer | SendFailure> => {
      const { hostname: host } = new URL(url);
      const sent = { host, id: headers["webhook-id"] ?? "", body: JSON.parse(body) };
      this.sent.push(sent);
      const said = await (this.rules.get(host) ?? (() => 200))(sent);
      return typeof said === "number" ? { status: said, headers: {}, body: "" } : said;
    },
  };
}

export const down: SendFailure = { reason_code: "CONNECTION_FAILED", message: "refused" };

/** The versions that a receiver got, by user, in the order of their sends. */
export function versionsByUser(sent: Sent[]): Map<string, number[]> {
  const byUser = Map.groupBy(sent, ({ body }) => body.data.user_id);
  return new Map(
    [...byUser].map(([user, own]) => [user, own.map(({ body }) => body.data.version)]),
  );
}
