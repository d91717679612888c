import type { Tone } from "./layout.tsx";

// What the steps, states and operations of a queue and of an outbox mean. A service adds its own.

export const meaningOfSteps: Record<string, string> = {
  RETRIED: "The attempt failed. The next one follows after a pause.",
  GAVE_UP: "The last attempt failed. This is now a dead letter.",
  TAKEN_OVER: "The lease expired and another worker took over.",
  SENT_BACK: "An operator sent the dead letter back. All its attempts begin anew.",
  IN_FLIGHT: "A relay is publishing the event.",
  PUBLISHED: "The stream acknowledged the event.",
  LOST: "Republished: the stream had lost the event.",
  REPLAYED: "Republished: an operator replayed the event.",
  MENDED: "Republished: the event had not been received.",
};

export const toneOfStates: Record<string, Tone> = {
  FAILED: "bad",
  DEAD: "bad",
  PUBLISHED: "good",
  MISSING: "bad",
  DELETED: "muted",
};

export const meaningOfOperations: Record<string, string> = {
  SEND_BACK: "Dead letters sent back",
  REPLAY: "Republished: replay",
  MEND: "Republished: not received",
  ERASE_USER: "User erased",
};
