import type { AuditChange } from '../../../src/contract/history.ts';
import { gatewayKeySchema } from '../../../src/contract/config/keys.ts';
import { groupSchema } from '../../../src/contract/config/group.ts';
import { upstreamSchema } from '../../../src/contract/config/upstream.ts';
import { memberSchema } from '../../../src/contract/config/members.ts';
import { isSame } from './document.ts';

export interface ChangedObject {
  /** Name of the list, such as `groups`. Empty for top-level fields. */
  readonly list: string;
  readonly name: string;
  readonly kind: 'added' | 'removed' | 'changed';
  /** Paths are relative to the object. */
  readonly changes: readonly AuditChange[];
}

/** Groups changes by object, in the order of first appearance. */
export function byObject(changes: readonly AuditChange[]): ChangedObject[] {
  const objects = new Map<string, ChangedObject>();
  for (const change of changes) {
    const [, list = '', name = change.path, rest = ''] =
      /^(\w+)\[([^\]]+)\]\.?(.*)$/.exec(change.path) ?? [];
    const key = `${list}[${name}]`;
    const isWhole = list !== '' && rest === '';
    const kind = !isWhole ? 'changed' : 'from' in change ? 'removed' : 'added';
    const before = objects.get(key)?.changes ?? [];
    objects.set(key, { list, name, kind, changes: [...before, { ...change, path: rest }] });
  }
  return [...objects.values()];
}

/** Counts changed objects, such as `2 added, 1 removed, 3 changed`. */
export function tally(objects: readonly ChangedObject[]): string {
  const parts = (['added', 'removed', 'changed'] as const).flatMap((kind) => {
    const number = objects.filter((object) => object.kind === kind).length;
    return number === 0 ? [] : [`${number} ${kind}`];
  });
  return parts.length === 0 ? 'no changes' : parts.join(', ');
}

/** Objects with all defaults, by list. */
const DEFAULTS: Readonly<Record<string, unknown>> = {
  groups: groupSchema.parse({ name: 'default' }),
  upstreams: upstreamSchema.parse({ id: 'default' }),
  keys: gatewayKeySchema.parse({ id: 'default', hash: `sha256:${'0'.repeat(64)}` }),
};

/**
 * Changed fields of an object. For an object that was added or removed, these are the fields that differ from the
 * defaults. Its name is omitted, because a heading shows it.
 */
export function fieldChanges({ list, kind, changes }: ChangedObject): readonly AuditChange[] {
  const [whole] = changes;
  if (kind === 'changed' || whole === undefined) return changes;
  const side = kind === 'added' ? 'to' : 'from';
  const chosen = differing(whole[side], DEFAULTS[list]) ?? {};
  return [...leavesOf('', chosen)]
    .filter(({ path }) => !UNSAID.has(path))
    .map(({ path, value }) => ({ path, [side]: value }));
}

const MEMBER = { ...memberSchema.parse({ upstream: '-' }), upstream: undefined };

/** Value to show for a change. Defaults of members are omitted, because they are most of the fields. */
export function reportedOf(path: string, value: unknown): unknown {
  if (/(^|\.)members\[[^\]]+\]$/.test(path)) return differing(value, MEMBER);
  const isList = /(^|\.)members$/.test(path) && Array.isArray(value);
  return isList ? value.map((each) => differing(each, MEMBER)) : value;
}

/** The name is in the heading, and hashes are never shown. */
const UNSAID = new Set(['name', 'id', 'hash']);

function* leavesOf(path: string, value: unknown): Generator<{ path: string; value: unknown }> {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isObject) {
    yield { path, value };
    return;
  }
  for (const [name, part] of Object.entries(value)) {
    yield* leavesOf(path === '' ? name : `${path}.${name}`, part);
  }
}

function differing(value: unknown, fallback: unknown): unknown {
  if (isSame(value, fallback)) return undefined;
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isObject || typeof fallback !== 'object' || fallback === null) return value;
  const parts = new Map(Object.entries(fallback));
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, part]) => {
      const own = differing(part, parts.get(name));
      return own === undefined ? [] : [[name, own]];
    }),
  );
}

/** Whether a value is an instant. These are shown relative to now. */
export function isInstant(value: unknown): value is string {
  return typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value);
}
