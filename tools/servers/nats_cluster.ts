import { freePort } from "./free_port.ts";
import { type NatsServer, startNats } from "./nats.ts";
import { newPassword } from "./password.ts";

export interface NatsCluster extends AsyncDisposable {
  readonly nodes: NatsServer[];
  /** The URLs of all nodes, separated by commas, as `NATS_URL` takes them. */
  readonly url: string;
  /** The ports on which the nodes listen for each other. */
  readonly routePorts: number[];
}

/** Nodes with JetStream that know each other; ready when they have elected a leader. */
export async function startNatsCluster(size = 3): Promise<NatsCluster> {
  const routePorts = Array.from({ length: size }, freePort);
  const password = newPassword(); // of clients and of nodes
  const routes = routePorts.map((port) => `"nats-route://node:${password}@127.0.0.1:${port}"`);
  const settings = (routePort: number) => `
cluster {
  name: kenri
  listen: "127.0.0.1:${routePort}"
  authorization { user: node, password: "${password}" }
  routes: [${routes.join(", ")}]
}
`;
  // All at once: none is ready before most of them are there.
  const started = await Promise.allSettled(
    routePorts.map((port) => startNats({ password, settings: settings(port) })),
  );
  const nodes = started.flatMap((one) => one.status === "fulfilled" ? [one.value] : []);
  const close = async () => {
    await Promise.all(nodes.map((node) => node.close()));
  };
  const failure = started.find((one) => one.status === "rejected");
  if (failure) {
    await close();
    throw failure.reason;
  }
  return {
    nodes,
    routePorts,
    url: nodes.map(({ url }) => url).join(),
    [Symbol.asyncDispose]: close,
  };
}
