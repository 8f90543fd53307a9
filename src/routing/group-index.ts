import { inOrder, type CompiledGroup, type ModelNames, type ModelUse } from './group-match.ts';
import type { CalledAt } from './path-match.ts';
import { PatternIndex } from './pattern-index.ts';

/** The part of a call that is known before its body is read. */
interface UnreadCall {
  readonly operation: string;
  readonly keyIds: readonly string[];
  /** null if no group has paths, or for any call of the operation. */
  readonly at: CalledAt | null;
}

/** Joint properties of the groups of a call before its model is known. */
export interface BeforeModel {
  /** The greatest use of the model by any of the groups. */
  readonly modelUse: ModelUse;
  /** Whether one of the groups replaces the automatic group, whatever the model. */
  readonly isReplaced: boolean;
  readonly keepsAlive: boolean;
}

type Facts = (group: CompiledGroup) => BeforeModel;

const NOTHING: BeforeModel = { modelUse: 'none', isReplaced: false, keepsAlive: false };

const USES: readonly ModelUse[] = ['none', 'place', 'counts'];

/**
 * Index of the groups of an upstream by the client's keys, or else by model, so that a call is not compared with every
 * group. It returns the same groups in the same order as a search through all of them.
 */
export class GroupIndex {
  readonly #groups: readonly CompiledGroup[];
  readonly #facts: Facts;
  readonly #byKey = new PatternIndex();
  readonly #byModel = new PatternIndex();
  /** Groups that neither index contains. */
  readonly #others: number[] = [];
  /** Groups for all clients and all paths. Their properties are cached by operation, of which there are few. */
  readonly #forAll: readonly CompiledGroup[];
  readonly #factsByOperation = new Map<string, BeforeModel>();
  /** Groups for some keys that the index by key does not contain, and groups for some paths. */
  readonly #forSome: readonly CompiledGroup[];

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
    const isForAll = ({ config, matchesPath }: CompiledGroup): boolean =>
      config.match.keys.length === 0 && matchesPath === null;
    this.#forAll = groups.filter(isForAll);
    this.#forSome = groups.filter(
      (group) => !isForAll(group) && !PatternIndex.takes(group.config.match.keys),
    );
  }

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

  /** Returns the joint properties of all groups that the call may match with some model, and of its `own` groups. */
  beforeModel(call: UnreadCall, own: readonly CompiledGroup[]): BeforeModel {
    const found = new Set<number>();
    this.#findByKeys(call.keyIds, found);
    const some = [...inOrder(this.#groups, found), ...this.#forSome].filter((group) =>
      takes(group, call),
    );
    return joined([this.#ofAll(call.operation), ...[...own, ...some].map(this.#facts)]);
  }

  #ofAll(operation: string): BeforeModel {
    const known = this.#factsByOperation.get(operation);
    if (known !== undefined) return known;
    const groups = this.#forAll.filter((group) => group.matchesOperation(operation));
    const made = joined(groups.map(this.#facts));
    this.#factsByOperation.set(operation, made);
    return made;
  }

  #findByKeys(keyIds: readonly string[], found: Set<number>): void {
    for (const id of keyIds) this.#byKey.find(id, found);
  }
}

/** Whether a group takes a call, apart from its model. */
export function takes(group: CompiledGroup, { operation, keyIds, at }: UnreadCall): boolean {
  const { matchesPath } = group;
  if (!group.matchesOperation(operation) || !group.matchesCaller(keyIds)) return false;
  return matchesPath === null || (at !== null && matchesPath(at));
}

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
