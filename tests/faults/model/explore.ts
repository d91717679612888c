// Visits every reachable state, the nearest first, so that it finds a shortest trace to each problem. Then
// it checks that a quiet state can be reached from each of them.

export interface Step<State> {
  label: string;
  next: State;
  breaks?: string | undefined; // the rule that this step breaks, if not the state it leads to
}

export interface System<State> {
  initial: State;
  keyOf(state: State): string;
  stepsFrom(state: State): Promise<Step<State>[]>;
  brokenIn(state: State): string | undefined;
  isQuiet(state: State): boolean;
}

export interface Explored {
  states: number;
  transitions: number;
  found: { rule: string; trace: string[] } | undefined;
}

export const neverQuiet = "everything ends well";

export async function explore<State>(system: System<State>): Promise<Explored> {
  const graph = new Graph(system);
  const found = await graph.grow() ?? await graph.findStuck();
  return { ...graph.figures(), found };
}

class Graph<State> {
  readonly #system: System<State>;
  readonly #states: State[] = [];
  readonly #places = new Map<string, number>();
  readonly #reachedFrom: number[] = [];
  readonly #quiet: boolean[] = [];
  readonly #edges: { from: number[]; to: number[] } = { from: [], to: [] };

  constructor(system: System<State>) {
    this.#system = system;
    this.#add(system.initial, -1);
  }

  figures(): { states: number; transitions: number } {
    return {
      states: this.#states.length,
      transitions: this.#edges.from.length,
    };
  }

  // Ends when all states are known or a rule is broken.
  async grow(): Promise<Explored["found"]> {
    const { stepsFrom, brokenIn } = this.#system;
    for (let from = 0; from < this.#states.length; from++) {
      for (const step of await stepsFrom(this.#at(from))) {
        this.#edges.from.push(from);
        this.#edges.to.push(this.#add(step.next, from));
        const rule = step.breaks ?? brokenIn(step.next);
        if (rule) return { rule, trace: [...await this.#wayTo(from), step.label] };
      }
    }
    return undefined;
  }

  async findStuck(): Promise<Explored["found"]> {
    const { from, to } = this.#edges;
    const ends = this.#quiet.slice();
    // Edges are in the order of the search, so one pass from the end finds nearly everything.
    for (let learned = true; learned;) {
      learned = false;
      for (let edge = from.length - 1; edge >= 0; edge--) {
        if (!ends[to[edge] as number] || ends[from[edge] as number]) continue;
        ends[from[edge] as number] = learned = true;
      }
    }
    const stuck = ends.indexOf(false);
    return stuck < 0 ? undefined : { rule: neverQuiet, trace: await this.#wayTo(stuck) };
  }

  #add(state: State, from: number): number {
    const key = this.#system.keyOf(state);
    const known = this.#places.get(key);
    if (known !== undefined) return known;
    const place = this.#states.push(state) - 1;
    this.#places.set(key, place);
    this.#reachedFrom.push(from);
    this.#quiet.push(this.#system.isQuiet(state));
    return place;
  }

  // If several traces lead to a state, equal processes may have swapped names. So the trace is replayed
  // from the start, and its labels name the same process throughout.
  async #wayTo(place: number): Promise<string[]> {
    const { keyOf, stepsFrom } = this.#system;
    const way: number[] = [];
    for (let at = place; at > 0; at = this.#reachedFrom[at] as number) way.unshift(at);
    const labels: string[] = [];
    let state = this.#at(0);
    for (const at of way) {
      const key = keyOf(this.#at(at));
      const step = (await stepsFrom(state)).find(({ next }) => keyOf(next) === key);
      if (!step) throw new Error(`No step leads to state ${at}`);
      labels.push(step.label);
      state = step.next;
    }
    return labels;
  }

  #at(place: number): State {
    return this.#states[place] as State;
  }
}
