import type * as z from 'zod';
import { portkeyNodeSchema } from './schema.ts';
import { below, type FieldError } from '../../../../src/config/field-error.ts';
import { readWithoutWrong } from '../groups.ts';

export type PortkeyNode = z.output<typeof portkeyNodeSchema>;

/** A target with a provider, and the settings that it inherits from strategies above it. */
export interface Leaf {
  /** Path in the document. */
  readonly at: string;
  readonly node: PortkeyNode;
  /** Its share of the calls of its tier. null if weights have no effect. */
  readonly weight: number | null;
}

/** Targets in the order in which they are tried: all targets of one tier before the next tier. */
export type TargetTiers = readonly (readonly Leaf[])[];

/** Fields that targets inherit from the strategy above them. */
const INHERITED = ['custom_host', 'request_timeout', 'override_params', 'retry'] as const;

/** Parses a config or a target, and lists its errors in `omitted`. null if it cannot be parsed. */
export function readNode(value: unknown, at: string, omitted: FieldError[]): PortkeyNode | null {
  return readWithoutWrong(portkeyNodeSchema, snakeKeys(value, 2), at, omitted, spareAt);
}

/** Parts that decide neither where calls go nor how they are distributed. */
const SPARE: readonly (readonly string[])[] = [
  ['name'],
  ['retry'],
  ['request_timeout'],
  ['strategy', 'on_status_codes'],
  ['strategy', 'conditions'],
  ['strategy', 'default'],
];

function spareAt(path: readonly PropertyKey[]): readonly string[] | null {
  return SPARE.find((spare) => spare.every((name, index) => path[index] === name)) ?? null;
}

/** Converts the camel case of SDKs. Fields of bodies stay as they are. */
function snakeKeys(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || depth === 0) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]: [string, unknown]) => {
      const name = key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      return [name, name === 'override_params' ? inner : snakeKeys(inner, depth - 1)];
    }),
  );
}

/**
 * Returns the targets of a node in tiers. Omitted parts are listed.
 *
 * @param visit called with each strategy below the node
 */
export function tiersOf(
  node: PortkeyNode,
  at: string,
  omitted: FieldError[],
  visit: (strategy: PortkeyNode, at: string) => void = () => {},
): TargetTiers {
  const { strategy, targets } = node;
  if (targets === undefined) return [[{ at, node, weight: null }]];
  const children = targets.flatMap((target, index) => {
    const path = below(at, `targets[${index}]`);
    const child = readNode(target, path, omitted);
    return child === null ? [] : [{ path, child: inheriting(node, child) }];
  });
  const mode = strategy?.mode ?? 'single';
  if (mode === 'conditional') {
    const message =
      'a condition below another strategy has no counterpart, because groups are chosen by the model of a call';
    omitted.push({ path: below(at, 'strategy.conditions'), message });
    return [];
  }
  if (mode === 'single') {
    for (const { path } of children.slice(1)) {
      omitted.push({ path, message: 'a strategy with mode single calls its first target only' });
    }
  }
  const used = mode === 'single' ? children.slice(0, 1) : children;
  const tiers = used.map(({ path, child }) => {
    if (child.targets !== undefined) visit(child, path);
    return tiersOf(child, path, omitted, visit);
  });
  if (mode !== 'loadbalance') return tiers.flat();
  return balanced(
    used.map(({ path, child }, index) => ({
      path,
      weight: child.weight ?? 1,
      tiers: tiers[index] ?? [],
    })),
    omitted,
  );
}

/** Joins the targets of a strategy with weights, tier by tier. */
function balanced(
  parts: readonly { readonly path: string; readonly weight: number; readonly tiers: TargetTiers }[],
  omitted: FieldError[],
): TargetTiers {
  const depth = Math.max(0, ...parts.map(({ tiers }) => tiers.length));
  if (parts.length > 1) {
    for (const { path, tiers } of parts.filter((part) => part.tiers.length > 1)) {
      const message = `its fallbacks (${tiers.length - 1}) apply only to ${path} at Portkey, but to all targets next to it here, because a tier gets calls only if no earlier tier has room`;
      omitted.push({ path: below(path, 'strategy'), message });
    }
  }
  return Array.from({ length: depth }, (_, tier) =>
    parts.flatMap(({ weight, tiers }) => {
      const leaves = tiers[tier] ?? [];
      const whole = leaves.reduce((sum, leaf) => sum + (leaf.weight ?? 1), 0);
      return leaves.map((leaf) => ({
        ...leaf,
        weight: leaves.length === 1 ? weight : (weight * (leaf.weight ?? 1)) / (whole || 1),
      }));
    }),
  );
}

function inheriting(parent: PortkeyNode, child: PortkeyNode): PortkeyNode {
  const inherited = Object.fromEntries(
    INHERITED.flatMap((name) => (parent[name] === undefined ? [] : [[name, parent[name]]])),
  );
  const { override_params: above } = parent;
  const { override_params: own } = child;
  const params =
    above === undefined && own === undefined ? {} : { override_params: { ...above, ...own } };
  return { ...inherited, ...child, ...params };
}
