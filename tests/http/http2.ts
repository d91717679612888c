// HTTP/2 clients that read no answers, because they keep their flow-control window at 0.
import { Buffer } from "node:buffer";
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from "node:http2";
import { together } from "./raw_http.ts";

export interface Http2Client extends Disposable {
  // Sends a request, and resolves with the status of the answer, or undefined if there is none.
  ask(headers: OutgoingHttpHeaders, body?: "begun"): Promise<number | undefined>;
}

export function connectManyHttp2(url: string, count: number): Http2Client[] & Disposable {
  return together(Array.from({ length: count }, () => connectHttp2(url)));
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
