import { PointsEventType } from "../gen/points/v1/points_event_pb.ts";

// Event types by the names that headers, tables and the API use.
export const typeOfName: ReadonlyMap<string, PointsEventType> = new Map([
  ["PointsAdded", PointsEventType.ADDED],
  ["PointsTaken", PointsEventType.TAKEN],
]);

const nameOfType = new Map<number, string>([...typeOfName].map(([name, type]) => [type, name]));

// An unknown type, of a newer schema, is represented by its number, so that its events are not
// lost.
export function nameOf(type: number): string {
  return nameOfType.get(type) ?? `${type}`;
}
