import { refusal } from "@kenri/shared/commands/answer.ts";
import { statusOfCode } from "./errors.ts";

// Somebody must have the role ADMIN in an active account, once anybody has had it.

export const lastAdminMessage = "the user is the last ADMIN";
export const lastAdmin = refusal(
  statusOfCode,
  "state_conflict",
  "LAST_ADMIN",
  lastAdminMessage,
);
export const lastAdminRefusal = {
  description: "Nobody would be left who has the role ADMIN",
  messages: { LAST_ADMIN: lastAdminMessage },
};
