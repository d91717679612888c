// Dead letters as operators see them and send them back.
import { look } from "./stack.ts";
import { until } from "./wait.ts";

export interface DeadLetter {
  layer: string;
  id: string;
  event_id: string | null;
  error: string;
  // deno-lint-ignore no-explicit-any
  payload: any;
}

export const ofEntitlement = "/debug/entitlement/dead-letters";
export const ofNotification = "/debug/notification/dead-letters";
export const sendBackEvents = "/operations/entitlement/dead-letters/send-back";
export const sendBack = "/operations/notification/dead-letters/send-back";

export function outcomes({ dead_letters }: { dead_letters: { outcome: string }[] }): string[] {
  return dead_letters.map(({ outcome }) => outcome);
}

export async function untilDead(url: string, path: string, count: number): Promise<DeadLetter[]> {
  await until(`${count} are dead`, async () => {
    return (await look(url, path)).dead_letters.length === count;
  });
  return (await look(url, path)).dead_letters;
}
