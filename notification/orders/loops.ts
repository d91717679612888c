import type { Loop } from "@kenri/shared/process/loop.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { keepEndpoints } from "../endpoints/keep_endpoints.ts";
import { sendOrders, type SendParts } from "./send_orders.ts";
import type { OrdersConfig } from "./settings.ts";

// The loops of a replica that sends orders.

export function orderLoops(
  parts: Omit<SendParts, "wakeEndpoints"> & { endpointsChanged: Wakeup },
  config: OrdersConfig,
): Loop[] {
  const { database, toSend, endpointsChanged, log } = parts;
  const wakeEndpoints = () => endpointsChanged.trigger();
  return [
    { name: "orders", run: (stop) => sendOrders({ ...parts, wakeEndpoints }, config, stop) },
    {
      name: "endpoints",
      run: (stop) =>
        keepEndpoints(
          { database, wakeOrders: toSend.wake, wake: endpointsChanged, log },
          config.endpoints,
          stop,
        ),
    },
  ];
}
