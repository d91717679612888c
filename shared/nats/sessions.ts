import type { JetStreamManager, StreamInfo } from "nats";
import type { Log } from "../process/log.ts";
import { reasonOf } from "../process/reason.ts";
import { pause } from "../process/signals.ts";
import { StartRefused } from "../process/start_refused.ts";
import type { NatsLink, Session } from "./link.ts";
import { Provisions } from "./provisions.ts";
import { warnOfLoss } from "./streams.ts";

// The loop of everything that works with JetStream. Each session begins with a check of the streams
// and consumers, because they may have been lost with the last connection, and then works until the
// connection is lost or something fails.

export interface SessionLoop<Info extends StreamInfo | void> {
  name: string; // unique in its process
  complaint: string; // logged with {reason}
  log: Log;
  // Whether a service may start while NATS lacks what the loop needs. It is false by default.
  mayWait?: boolean;
  // Verifies or makes the streams and consumers. If it returns the stream that has the events, a
  // warning is logged once if that stream can lose them.
  ensure(manager: JetStreamManager, mayMake: boolean): Promise<Info>;
  // Calls `works` whenever it has succeeded. If it returns, the session begins again.
  work(ready: Ready<Info>, works: () => void): Promise<void>;
}

export interface Ready<Info> {
  session: Session;
  manager: JetStreamManager;
  info: Info;
}

const retryMs = 1_000;

// A failure is logged once, until the work has succeeded or fails for another reason. A failure
// because the connection was lost is not logged here, because the link reports that.
export async function eachSession<Info extends StreamInfo | void>(
  link: NatsLink,
  { name, complaint, log, mayWait = false, ensure, work }: SessionLoop<Info>,
  stop: AbortSignal,
): Promise<void> {
  const provisions = new Provisions(link, name, mayWait);
  let warned = false;
  let reported = "";
  const works = () => void (reported = "");
  for await (const session of link.sessions(stop)) {
    try {
      const ready = await provisions.ensure(session, async (manager, mayMake) => ({
        session,
        manager,
        info: await ensure(manager, mayMake),
      }));
      if (!warned && ready.info) warnOfLoss(ready.info, log);
      warned = true;
      await work(ready, works);
    } catch (error) {
      if (error instanceof StartRefused) throw error;
      const reason = reasonOf(error);
      if (reason !== reported && !session.signal.aborted) {
        log.warn(complaint, { reason });
        reported = reason;
      }
      await pause(retryMs, stop);
    }
  }
}
