export interface RefusalFacts {
  readonly reason: string;
  readonly key: string | null;
  readonly key_kind: 'gateway' | 'provider' | null;
  readonly team: string | null;
  readonly group: string | null;
  readonly upstream: string | null;
  readonly model: string | null;
}

export interface RefusalSum {
  readonly count: number;
  /** Times in the format of `toISOString`. */
  readonly first_at: string;
  readonly last_at: string;
  /** The error message of one of them. */
  readonly message: string;
  /** Ids of the latest requests, newest first. */
  readonly request_ids: readonly string[];
}

const REQUEST_IDS_MAX = 10;

/** Adds up the sums of two sets of refused calls. `before` are the earlier ones. */
export function addRefusals(before: RefusalSum, after: RefusalSum): RefusalSum {
  return {
    count: before.count + after.count,
    first_at: before.first_at < after.first_at ? before.first_at : after.first_at,
    last_at: before.last_at > after.last_at ? before.last_at : after.last_at,
    message: after.message,
    request_ids: [...after.request_ids, ...before.request_ids].slice(0, REQUEST_IDS_MAX),
  };
}

/** Adds up refused calls with the same facts. Both the input and the result have the newest first. */
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

/** Maximum shares of the rows with texts of callers: of callers without a gateway key, and of all callers. */
const SHARE_OF_STRANGERS = 1 / 4;
const SHARE_OF_TEXTS = 1 / 2;

/**
 * The rows under which refused calls are counted, limited in number. Callers can make up models and provider keys.
 * Beyond a share of the rows these are left out, so that they displace no row of a gateway key. When all rows are in
 * use, a call counts only by its reason and upstream. Those are configured, so there are few.
 */
export class RefusalRows {
  readonly #max: number;
  readonly #ids = new Set<string>();
  #texts = 0;

  /** @param max maximum number of rows, except those with only a reason and an upstream */
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
