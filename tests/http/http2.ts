// Clients that speak HTTP/2 without being asked, and take no answer: their window stays shut.
import { Buffer } from "node:buffer";
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from "node:http2";

export interface Http2Client extends Disposable {
  // Sends a request, and resolves with the status of its answer; undefined when there was none.
  ask(headers: OutgoingHttpHeaders, body?: "begun"): Promise<number | undefined>;
}

export function connectHttp2(url: string): Http2Client {
  const session: ClientHttp2Session = connect(url, { settings: { initialWindowSize: 0 } });
  session.on("error", () => {});
  return {
    ask: (headers, body) =>
      new Promise((resolve) => {
        const request = session.request(headers, { endStream: body === undefined });
        if (body) request.write(Buffer.from("t"));
        request.on("response", (answer) => resolve(answer[":status"]));
        request.on("error", () => resolve(undefined));
        request.on("close", () => resolve(undefined));
      }),
    [Symbol.dispose]: () => session.destroy(),
  };
}
