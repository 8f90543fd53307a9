/** Facts of a refused call by which it is counted. */
export interface RefusalFacts {
  readonly reason: string;
  readonly key: string | null;
  readonly key_kind: 'gateway' | 'provider' | null;
  readonly team: string | null;
  readonly group: string | null;
  readonly upstream: string | null;
  readonly model: string | null;
}

/** Refused calls with the same facts. */
export interface RefusalSum {
  readonly count: number;
  /** Times as `toISOString` writes them. */
  readonly first_at: string;
  readonly last_at: string;
  /** The error message of one of them. */
  readonly message: string;
  /** Ids of the latest requests, the latest first. */
  readonly request_ids: readonly string[];
}

/** Maximum request ids that one sum keeps. */
const REQUEST_IDS_MAX = 10;

/** Adds the sums of two sets of refused calls, the earlier ones first. */
export function addRefusals(before: RefusalSum, after: RefusalSum): RefusalSum {
  return {
    count: before.count + after.count,
    first_at: before.first_at < after.first_at ? before.first_at : after.first_at,
    last_at: before.last_at > after.last_at ? before.last_at : after.last_at,
    message: after.message,
    request_ids: [...after.request_ids, ...before.request_ids].slice(0, REQUEST_IDS_MAX),
  };
}

/** Adds up refused calls with the same facts. The latest come first, also in the answer. */
export function summedRefusals<Count extends RefusalFacts & RefusalSum>(
  counts: readonly Count[],
): Count[] {
  const rows = new Map<string, Count>();
  for (const one of counts) {
    const id = idOf(one);
    const later = rows.get(id);
    rows.set(id, later === undefined ? one : { ...later, ...addRefusals(one, later) });
  }
  return [...rows.values()];
}

/** Parts of the rows that may hold texts of callers: of callers without a gateway key, and of all callers. */
const SHARE_OF_STRANGERS = 1 / 4;
const SHARE_OF_TEXTS = 1 / 2;

/**
 * The rows under which refused calls are counted, of which there are so many at most. Models and provider keys are texts that
 * callers can make up: beyond a part of the rows they are left out, so that they push out no row of a gateway key. When all
 * rows are in use, a call counts by its reason and upstream alone. Those are configured, so there are few.
 */
export class RefusalRows {
  readonly #max: number;
  readonly #ids = new Set<string>();
  #texts = 0;

  /** @param max maximum rows, not counting those with only a reason and an upstream */
  constructor(max: number) {
    this.#max = max;
  }

  /** Adds a row that exists. */
  add(facts: RefusalFacts): void {
    const id = idOf(facts);
    if (this.#ids.has(id)) return;
    this.#ids.add(id);
    if (hasText(facts)) this.#texts += 1;
  }

  /** Returns the facts under which a refused call is counted. */
  place(facts: RefusalFacts): RefusalFacts {
    if (this.#mayAdd(facts)) {
      this.add(facts);
      return facts;
    }
    const isStranger = facts.key_kind === 'provider';
    const plain = {
      ...facts,
      model: null,
      ...(isStranger && { key: null, key_kind: null }),
    };
    if (this.#mayAdd(plain)) {
      this.add(plain);
      return plain;
    }
    const nothing = { key: null, key_kind: null, team: null, group: null, model: null };
    return { ...facts, ...nothing };
  }

  #mayAdd(facts: RefusalFacts): boolean {
    if (this.#ids.has(idOf(facts))) return true;
    if (this.#ids.size >= this.#max) return false;
    if (!hasText(facts)) return true;
    const share = facts.key_kind === 'gateway' ? SHARE_OF_TEXTS : SHARE_OF_STRANGERS;
    return this.#texts < this.#max * share;
  }
}

/** Names a row. */
export function idOf({
  reason,
  key,
  key_kind,
  team,
  group,
  upstream,
  model,
}: RefusalFacts): string {
  return JSON.stringify([reason, key, key_kind, team, group, upstream, model]);
}

function hasText({ key_kind: kind, model }: RefusalFacts): boolean {
  return kind === 'provider' || model !== null;
}
