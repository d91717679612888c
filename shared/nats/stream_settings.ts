import { duration, natsName, natsSubject } from "../process/setting_kinds.ts";

// Each service that publishes or consumes events has these, under its own name.
export const eventStreamSettings = {
  "subject": natsSubject().describe("Subject of the events"),
  "stream": natsName().describe("Stream of the events"),
  "duplicate-window": duration().prefault("2m").describe(
    "How long JetStream itself removes duplicates",
  ),
};
