import { EntitlementEventType } from "../gen/entitlement/v1/entitlement_event_pb.ts";

// The types of events by the names that headers, tables and the API use for them.
export const typeOfName: ReadonlyMap<string, EntitlementEventType> = new Map([
  ["EntitlementGranted", EntitlementEventType.GRANTED],
  ["EntitlementRevoked", EntitlementEventType.REVOKED],
]);

const nameOfType = new Map<number, string>([...typeOfName].map(([name, type]) => [type, name]));

// A type of a newer schema is kept as its number, so that nothing is lost.
export function nameOf(type: number): string {
  return nameOfType.get(type) ?? `${type}`;
}
