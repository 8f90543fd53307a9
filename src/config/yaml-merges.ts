import { isAlias, isMap, isNode, isPair, isScalar, isSeq, visit } from 'yaml';
import type { Alias, Document, Node, Pair, YAMLMap } from 'yaml';

/** Whether a pair merges other maps into its own. A quoted `"<<"` is a key like any other. */
function isMerge({ key }: Pair): boolean {
  return isScalar(key) && key.value === '<<' && key.type === 'PLAIN';
}

export type AliasTargets = ReadonlyMap<Alias, Node>;

/** Maps each alias to its node, in one pass. The library searches the whole document for each alias. */
export function aliasTargets(document: Document): AliasTargets {
  const anchored = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  visit(document, (_key, node) => {
    if (isAlias(node)) {
      const repeated = anchored.get(node.source);
      if (repeated !== undefined) targets.set(node, repeated);
    } else if (isNode(node) && node.anchor !== undefined && node.anchor !== '') {
      anchored.set(node.anchor, node);
    }
  });
  return targets;
}

/** Returns the maps that a pair merges. null if one of them is not a map. */
function sourcesOf({ value }: Pair, targets: AliasTargets): readonly YAMLMap[] | null {
  const resolved = (node: unknown): unknown => (isAlias(node) ? targets.get(node) : node);
  const whole = resolved(value);
  const sources = isSeq(whole) ? whole.items.map(resolved) : [whole];
  return sources.every((source) => isMap(source)) ? sources : null;
}

/** Returns the position of a merge of something that is not a map. null if there is none. */
export function mergeProblem(document: Document, targets: AliasTargets): number | null {
  let offset: number | null = null;
  visit(document, {
    Pair(_key, pair) {
      if (!isMerge(pair) || sourcesOf(pair, targets) !== null) return undefined;
      const wrong = isNode(pair.value) ? pair.value : pair.key;
      offset = (wrong as Node).range?.[0] ?? 0;
      return visit.BREAK;
    },
  });
  return offset;
}

/**
 * Counts the values that merges copy. An alias repeats a value without a copy, but each merge copies the merged maps
 * with all of their values.
 */
export function mergedValues(document: Document, targets: AliasTargets): number {
  const sizes = new WeakMap<object, number>();
  const sizeOf = (node: unknown): number => {
    if (isPair(node)) {
      if (!isMerge(node)) return 1 + sizeOf(node.value);
      return (sourcesOf(node, targets) ?? []).reduce((sum, source) => sum + sizeOf(source), 0);
    }
    if (!isMap(node) && !isSeq(node)) return 1;
    const known = sizes.get(node);
    if (known !== undefined) return known;
    const size = node.items.reduce<number>((sum, item) => sum + sizeOf(item), 1);
    sizes.set(node, size);
    return size;
  };
  let values = 0;
  visit(document, {
    Pair(_key, pair) {
      if (isMerge(pair)) values += sizeOf(pair);
    },
  });
  return values;
}
