import type { Sender } from "@kenri/shared/commands/route.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";

// The key of a due reservation. No request may have one like it.

const prefix = "reservation:";

export function reservationKey(id: string): string {
  return prefix + id;
}

export function outsideKey<Given extends Sender>(sender: Given): Given {
  if (sender.idempotencyKey.startsWith(prefix)) {
    throw new ApiError("BAD_REQUEST", `Idempotency-Key must not begin with ${prefix}`);
  }
  return sender;
}
