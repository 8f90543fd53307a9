import { inOrder, type CompiledGroup, type ModelNames, type ModelUse } from './group-match.ts';
import type { CalledAt } from './path-match.ts';
import { PatternIndex } from './pattern-index.ts';

/** A call as far as groups look at it before its body is read. */
interface UnreadCall {
  readonly operation: string;
  readonly keyIds: readonly string[];
  /** Null: no group names paths, or it is any call of its operation. */
  readonly at: CalledAt | null;
}

/** Everything that is asked of the groups of a call before its model is known. */
export interface BeforeModel {
  /** The greatest use that any of them makes of the model. */
  readonly modelUse: ModelUse;
  /** One of them takes the automatic group's place, whatever the model. */
  readonly isReplaced: boolean;
  /** One of them sends comments to streams that wait. */
  readonly keepsAlive: boolean;
}

/** Tells that of one group. */
type Facts = (group: CompiledGroup) => BeforeModel;

const NOTHING: BeforeModel = { modelUse: 'none', isReplaced: false, keepsAlive: false };

const USES: readonly ModelUse[] = ['none', 'place', 'counts'];

/**
 * The groups of an upstream, so that those of a call are found without a look at each: by the caller's keys, else by the
 * model. The answers are those of a search through all of them, in the same order.
 */
export class GroupIndex {
  readonly #groups: readonly CompiledGroup[];
  readonly #facts: Facts;
  readonly #byKey = new PatternIndex();
  readonly #byModel = new PatternIndex();
  /** Found by neither. */
  readonly #others: number[] = [];
  /** Groups for anybody, by any path, by what they say to an operation: as many as there are operations. */
  readonly #forAnybody: readonly CompiledGroup[];
  readonly #saidByOperation = new Map<string, BeforeModel>();
  /** Groups for some keys that are not found by them, and for some paths. */
  readonly #forSomebody: readonly CompiledGroup[];

  /** @param groups the narrowest first */
  constructor(groups: readonly CompiledGroup[], facts: Facts) {
    this.#groups = groups;
    this.#facts = facts;
    for (const [entry, { config }] of groups.entries()) {
      const { keys, models } = config.match;
      if (PatternIndex.takes(keys)) this.#byKey.add(keys, entry);
      else if (PatternIndex.takes(models)) this.#byModel.add(models, entry);
      else this.#others.push(entry);
    }
    const isForAnybody = ({ config, matchesPath }: CompiledGroup): boolean =>
      config.match.keys.length === 0 && matchesPath === null;
    this.#forAnybody = groups.filter(isForAnybody);
    this.#forSomebody = groups.filter(
      (group) => !isForAnybody(group) && !PatternIndex.takes(group.config.match.keys),
    );
  }

  /** Lists the groups of a call. */
  matching(call: UnreadCall, model: ModelNames): CompiledGroup[] {
    const found = new Set(this.#others);
    this.#findByKeys(call.keyIds, found);
    for (const name of model.names) {
      this.#byModel.find(name, found);
      this.#byModel.find(`${model.upstream}/${name}`, found);
    }
    return inOrder(this.#groups, found).filter(
      (group) => takes(group, call) && (group.matchesModel === null || group.matchesModel(model)),
    );
  }

  /** Tells what the groups of a call, and of others with another model, say together. */
  beforeModel(call: UnreadCall, own: readonly CompiledGroup[]): BeforeModel {
    const found = new Set<number>();
    this.#findByKeys(call.keyIds, found);
    const some = [...inOrder(this.#groups, found), ...this.#forSomebody].filter((group) =>
      takes(group, call),
    );
    return joined([this.#toAnybody(call.operation), ...[...own, ...some].map(this.#facts)]);
  }

  #toAnybody(operation: string): BeforeModel {
    const known = this.#saidByOperation.get(operation);
    if (known !== undefined) return known;
    const groups = this.#forAnybody.filter((group) => group.matchesOperation(operation));
    const made = joined(groups.map(this.#facts));
    this.#saidByOperation.set(operation, made);
    return made;
  }

  #findByKeys(keyIds: readonly string[], found: Set<number>): void {
    for (const id of keyIds) this.#byKey.find(id, found);
  }
}

/** Tells whether a group is for a call, whatever its model. */
export function takes(group: CompiledGroup, { operation, keyIds, at }: UnreadCall): boolean {
  const { matchesPath } = group;
  if (!group.matchesOperation(operation) || !group.matchesCaller(keyIds)) return false;
  return matchesPath === null || (at !== null && matchesPath(at));
}

/** Picks the greater of two uses of a model. */
export function greaterUse(a: ModelUse, b: ModelUse): ModelUse {
  return USES.indexOf(a) > USES.indexOf(b) ? a : b;
}

function joined(all: readonly BeforeModel[]): BeforeModel {
  return all.reduce(
    (a, b) => ({
      modelUse: greaterUse(a.modelUse, b.modelUse),
      isReplaced: a.isReplaced || b.isReplaced,
      keepsAlive: a.keepsAlive || b.keepsAlive,
    }),
    NOTHING,
  );
}
