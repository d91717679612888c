import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Reason } from "../orders/reasons.ts";
import type { EndpointOptions } from "../orders/settings.ts";

// What came of one send to an endpoint.
export interface SendOutcome {
  endpointId: string;
  orderId: string;
  reason: Reason | undefined; // none for success
  failuresBefore: number; // of the endpoint, at the claim
}

export function noteOutcomes(
  _database: Database,
  _options: EndpointOptions,
  _outcomes: SendOutcome[],
): Promise<{ changed: boolean }> {
  return Promise.resolve({ changed: false });
}
