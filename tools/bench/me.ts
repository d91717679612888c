// How many requests of people with sessions the gateway admits: /v1/me, compared with a handler that
// returns a constant of the same length.
import { runLoad } from "../load/sockets.ts";
import { memoryOf } from "../servers/memory.ts";
import { startConstant } from "./answers.ts";
import { startGatewayStage } from "./gateway_stage.ts";
import type { Bench, Work } from "./work.ts";

const people = 100;
const answerBytes = 260;

export async function startMe({ servers, quick }: Bench): Promise<Work> {
  const requests = quick ? 10_000 : 50_000;
  const stage = await startGatewayStage(servers, "me", { people });
  const constant = await startConstant(answerBytes);
  const cookies = stage.people.map(({ cookie }) => cookie);
  const measure = async (url: string) => {
    const { seconds } = await runLoad(url, "me", { first: 0, count: requests, cookies });
    return requests / seconds;
  };
  const [gateway] = stage.gateways;
  return {
    unit: "answers/s",
    atMost: { "gateway MiB": 160, "account MiB": 160 },
    measure: async () => ({
      perSecond: await measure(`${gateway?.url}`),
      figures: {
        "gateway MiB": memoryOf(gateway?.pid ?? NaN).peakMebibytes,
        "account MiB": memoryOf(stage.account.pid).peakMebibytes,
      },
    }),
    limits: [{
      name: "a constant answer",
      what: "by Hono, of the same length, to the same requests",
      target: 0.35,
      measure: () => measure(constant.url),
    }],
    [Symbol.asyncDispose]: async () => {
      constant.stop();
      await stage[Symbol.asyncDispose]();
    },
  };
}
