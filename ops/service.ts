import { UsageError } from "@kenri/shared/ops/command.ts";
import type { Looks } from "@kenri/shared/operators/looks.ts";
import { type ServiceApi, Unreachable } from "@kenri/shared/ops/service_api.ts";

/** A service as its program declares it, with its default port. */
export interface Listed {
  name: string;
  port: number;
  looks: Looks;
}

/** A service that commands can ask. */
export interface Service extends Listed {
  api: ServiceApi;
}

export interface Answers<Answer> {
  answered: { service: Service; answer: Answer }[];
  unreachable: Unreachable[];
}

/**
 * Asks all of them at once. What one of them can't answer does not hide what the others know; it is
 * thrown only if none of them answers.
 */
export async function askEach<Answer>(
  services: Service[],
  ask: (service: Service) => Promise<Answer>,
): Promise<Answers<Answer>> {
  const answers: Answers<Answer> = { answered: [], unreachable: [] };
  const asked = await Promise.allSettled(
    services.map(async (service) => ({ service, answer: await ask(service) })),
  );
  for (const one of asked) {
    if (one.status === "fulfilled") answers.answered.push(one.value);
    else if (one.reason instanceof Unreachable) answers.unreachable.push(one.reason);
    else throw one.reason;
  }
  if (answers.answered.length === 0 && answers.unreachable.length > 0) {
    throw new Unreachable(answers.unreachable.map(({ message }) => message).join("\n"));
  }
  return answers;
}

/** The layers of dead letters, each with its service, in the order of the services. */
export function layersOf<One extends Listed>(
  services: One[],
): { layer: string; about: string; service: One }[] {
  return services.flatMap((service) =>
    Object.entries(service.looks.deadLetters ?? {}).map(([layer, about]) => ({
      layer,
      about,
      service,
    }))
  );
}

export function layerOf(
  services: Service[],
  given: string | undefined,
): { layer: string; service: Service } {
  const layers = layersOf(services);
  const found = layers.find(({ layer }) => layer === given);
  if (found) return found;
  const names = layers.map(({ layer }) => layer).join(", ");
  throw new UsageError(`LAYER must be one of ${names}, not "${given ?? ""}"`);
}
