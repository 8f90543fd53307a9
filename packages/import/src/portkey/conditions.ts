import { portkeyConditionSchema } from './schema.ts';
import { globsMayOverlap } from '../../../../src/routing/glob.ts';
import type { FieldError } from '../../../../src/config/field-error.ts';
import { readWithoutWrong } from '../groups.ts';
import { readNode, tiersOf, type PortkeyNode } from './tree.ts';
import { modelOf } from './target.ts';

/** A part of a config that becomes one group. */
export interface Branch {
  readonly node: PortkeyNode;
  /** Path in the document. */
  readonly at: string;
  /** Name of the group. If absent, it comes from the config or its model. */
  readonly title?: string;
  /** Models that callers request. null means the model of the targets, or any. */
  readonly models: readonly string[] | null;
  /** Whether it is for calls that match no condition. */
  readonly isRest: boolean;
}

/** Splits a config by its conditions. Without conditions there is one branch. */
export function branchesOf(root: PortkeyNode, omitted: FieldError[]): Branch[] {
  if (root.strategy?.mode !== 'conditional') {
    return [{ node: root, at: '', models: null, isRest: false }];
  }
  const { conditions = [], default: usual } = root.strategy;
  const targets = (root.targets ?? []).flatMap((value, index) => {
    const at = `targets[${index}]`;
    const node = readNode(value, at, omitted);
    return node === null ? [] : [{ at, node: { ...node, override_params: merged(root, node) } }];
  });
  const models = new Map<string, string[]>();
  const taken = new TakenModels();
  for (const [index, value] of conditions.entries()) {
    const at = `strategy.conditions[${index}]`;
    const condition = readWithoutWrong(portkeyConditionSchema, value, at, omitted, () => null);
    if (condition === null) continue;
    const { query, then } = condition;
    const path = `${at}.query`;
    const requested = modelsOf(query);
    if (requested === null) {
      const message = `cannot be converted, because a group is chosen by the model of a call. Let callers request a separate model for \`${then}\``;
      omitted.push({ path, message });
      continue;
    }
    const free = [...new Set(requested)].filter((model) => {
      const same = taken.add(model, then);
      if (same === null) return true;
      if (same.name === then && same.model === model) return false;
      const message = `\`${model}\` overlaps an earlier condition (\`${same.model}\`), and a call runs in one group with members`;
      omitted.push({ path, message });
      return false;
    });
    if (free.length > 0) models.set(then, [...(models.get(then) ?? []), ...free]);
  }
  const branches = [...models].flatMap(([then, requested]): Branch[] => {
    const target = targets.find(({ node }) => node.name === then);
    if (target !== undefined) return [{ ...target, title: then, models: requested, isRest: false }];
    omitted.push({
      path: 'strategy.conditions',
      message: `\`${then}\` is not the name of a target`,
    });
    return [];
  });
  const other = targets.find(({ node }) => node.name === usual);
  if (other === undefined) return branches;
  return [...branches, ...otherwise(other, taken, omitted)];
}

interface ModelChoice {
  readonly model: string;
  readonly name: string;
}

/** Models of earlier conditions. Most are full names, which need no comparison of each pair. */
class TakenModels {
  readonly #names = new Map<string, ModelChoice>();
  readonly #globs: ModelChoice[] = [];

  /** Adds a model. Returns the earlier choice that matches some of its calls, or null. */
  add(model: string, name: string): ModelChoice | null {
    const isGlob = model.includes('*');
    const overlaps = (other: ModelChoice): boolean => globsMayOverlap(model, other.model);
    const same =
      this.#names.get(model.toLowerCase()) ??
      this.#globs.find(overlaps) ??
      (isGlob ? [...this.#names.values()].find(overlaps) : undefined);
    if (same !== undefined) return same;
    if (isGlob) this.#globs.push({ model, name });
    else this.#names.set(model.toLowerCase(), { model, name });
    return null;
  }
}

/** Returns the branch of all other calls. It needs a model, because groups are found by model. */
function otherwise(
  target: { readonly at: string; readonly node: PortkeyNode },
  taken: TakenModels,
  omitted: FieldError[],
): Branch[] {
  const [first] = tiersOf(target.node, target.at, [])
    .flat()
    .flatMap(({ node }) => modelOf(node).requested ?? []);
  const path = 'strategy.default';
  if (first === undefined) {
    const message = `\`${target.node.name}\` takes the calls of every other model, and a call cannot match two groups with members. Callers can use the base URL of its upstream`;
    omitted.push({ path, message });
    return [];
  }
  if (taken.add(first, '') !== null) return [];
  return [
    {
      ...target,
      ...(target.node.name === undefined ? {} : { title: target.node.name }),
      models: [first],
      isRest: true,
    },
  ];
}

function merged(root: PortkeyNode, node: PortkeyNode): PortkeyNode['override_params'] {
  if (root.override_params === undefined) return node.override_params;
  return { ...root.override_params, ...node.override_params };
}

/** Returns the models that a query matches, as globs. null if it queries something else. */
function modelsOf(query: Readonly<Record<string, unknown>>): string[] | null {
  const entries = Object.entries(query);
  const [only] = entries;
  if (only === undefined || entries.length > 1) return null;
  const [key, value] = only;
  if (key === '$or' && Array.isArray(value)) {
    const all = value.map((each: unknown) =>
      typeof each === 'object' && each !== null ? modelsOf(each as Record<string, unknown>) : null,
    );
    return all.some((each) => each === null) ? null : all.flatMap((each) => each ?? []);
  }
  if (key !== 'params.model') return null;
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return null;
  const tests = Object.entries(value);
  const [test] = tests;
  if (test === undefined || tests.length > 1) return null;
  const [operator, operand] = test as [string, unknown];
  if (operator === '$eq' && typeof operand === 'string') return [operand];
  if (operator === '$regex' && typeof operand === 'string') return globOf(operand);
  const isList = Array.isArray(operand) && operand.every((each) => typeof each === 'string');
  return operator === '$in' && isList && operand.length > 0 ? operand : null;
}

/** Converts a regular expression to a glob, if it is a prefix, a suffix or a part of a name. */
function globOf(expression: string): string[] | null {
  const [, start, middle, end] =
    /^(\^?)((?:[\w\-/:@ ]|\\[.\-/]|\.\*)*)(\$?)$/.exec(expression) ?? [];
  if (middle === undefined || middle === '') return null;
  const plain = middle.replaceAll('.*', '*').replaceAll('\\', '');
  return [`${start === '' ? '*' : ''}${plain}${end === '' ? '*' : ''}`.replaceAll(/\*{2,}/g, '*')];
}
