import type { Channel } from "./channel.ts";

// Makes every send to the chosen users fail, for tests of retries and dead letters.
export function failingFor(userIdPrefix: string, channel: Channel): Channel {
  return {
    send(send, signal) {
      if (!send.user_id.startsWith(userIdPrefix)) return channel.send(send, signal);
      return Promise.reject(new Error("Failure injected for this user"));
    },
  };
}
