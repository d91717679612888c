import type { Channel } from "./channel.ts";

// Lets every send to chosen users fail, to see retries and dead letters at work.
export function failingFor(userIdPrefix: string, channel: Channel): Channel {
  return {
    send(send, signal) {
      if (!send.user_id.startsWith(userIdPrefix)) return channel.send(send, signal);
      return Promise.reject(new Error("Failure injected for this user"));
    },
  };
}
