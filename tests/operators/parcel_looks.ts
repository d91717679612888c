// What operators see of the service in parcel_service.ts.
import type { Looks, QueueLooks, ServiceStatus } from "../../shared/operators/looks.ts";
import type { Waiting } from "../../shared/operators/status.ts";

export interface ParcelStatus extends ServiceStatus, Waiting {
  returns: Waiting;
  weighed: number;
}

export const timelineBy = ["event_id", "user_id"] as const;

export const parcelQueue: QueueLooks<ParcelStatus> = {
  title: "Packing",
  noun: "parcel",
  until: "to be packed",
  where: "on the table",
  command: "parcels",
  layers: ["parcel"],
  lateSeconds: 30,
  waitsForNats: false,
  of: (status) => status,
};

export const returnQueue: QueueLooks<ParcelStatus> = {
  title: "Returns",
  noun: "item",
  until: "to be unpacked",
  command: "returns",
  layers: [],
  lateSeconds: 30,
  waitsForNats: false,
  of: (status) => status.returns,
};

export const looks: Looks<ParcelStatus> = {
  status: {
    queues: [parcelQueue, returnQueue],
    figures: ({ weighed }) => ({ "parcels weighed": weighed }),
    problems: ({ weighed }) => weighed > 0 ? [] : ["no parcel was weighed"],
  },
  timeline: { title: "parcel", absent: "not packed", by: timelineBy },
  deadLetters: { parcel: "Parcels that nobody could pack." },
  erasesUsers: "first",
  logsOperations: true,
};

export const listed = { name: "parcel", port: 8099, looks };
