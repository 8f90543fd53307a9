import type { CallCounts } from '../contract/history.ts';

const NAME_LENGTH_MAX = 128;

interface CallKind {
  readonly caller: string;
  readonly upstream: string;
  readonly model: string | null;
}

/**
 * Counts calls by key, upstream and model. Combinations beyond the maximum are not counted, because callers may make up
 * models.
 */
export class CallsByKind {
  readonly #counts = new Map<string, [string, string, string | null, number]>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  add({ caller, upstream, model }: CallKind, calls: number): void {
    const name = `${caller}\n${upstream}\n${model ?? ''}`;
    const known = this.#counts.get(name);
    if (known !== undefined) known[3] += calls;
    else if (this.#counts.size < this.#max) {
      this.#counts.set(name, [
        cut(caller),
        cut(upstream),
        model === null ? null : cut(model),
        calls,
      ]);
    }
  }

  /** Lists the combinations with the most calls first. */
  most(count: number): CallCounts {
    return [...this.#counts.values()].toSorted((a, b) => b[3] - a[3]).slice(0, count);
  }
}

/** Adds up counts, and keeps the combinations with the most calls. */
export function sumOfCalls(all: readonly CallCounts[], max = Infinity): CallCounts {
  // The inputs are bounded, so all of them are added up before any is left out.
  const sum = new CallsByKind(Infinity);
  for (const counts of all) {
    for (const [caller, upstream, model, calls] of counts) {
      sum.add({ caller, upstream, model }, calls);
    }
  }
  return sum.most(max);
}

function cut(name: string): string {
  return name.slice(0, NAME_LENGTH_MAX);
}
