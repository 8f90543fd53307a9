import type { AuditChange } from '../../../src/contract/audit.ts';
import { gatewayKeySchema } from '../../../src/contract/config/keys.ts';
import { groupSchema } from '../../../src/contract/config/group.ts';
import { upstreamSchema } from '../../../src/contract/config/upstream-config.ts';
import { memberSchema } from '../../../src/contract/config/members.ts';
import { isSame } from './document.ts';

/** One object of the configuration with everything that changes about it. */
export interface ChangedObject {
  /** As in `groups`; empty for what stands at the top of the document. */
  readonly list: string;
  readonly name: string;
  readonly kind: 'added' | 'removed' | 'changed';
  /** With paths that begin at the object. */
  readonly changes: readonly AuditChange[];
}

/** Changes by the group, upstream or key that they are about, in the order in which they come. */
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

/** Counts of a list of changed objects, as in `2 added, 1 removed, 3 changed`. */
export function tally(objects: readonly ChangedObject[]): string {
  const parts = (['added', 'removed', 'changed'] as const).flatMap((kind) => {
    const number = objects.filter((object) => object.kind === kind).length;
    return number === 0 ? [] : [`${number} ${kind}`];
  });
  return parts.length === 0 ? 'nothing changes' : parts.join(', ');
}

/** Objects of each list as they are without anything being said of them. */
const DEFAULTS: Readonly<Record<string, unknown>> = {
  groups: groupSchema.parse({ name: 'default' }),
  upstreams: upstreamSchema.parse({ id: 'default' }),
  keys: gatewayKeySchema.parse({ id: 'default', hash: `sha256:${'0'.repeat(64)}` }),
};

/**
 * The fields that change about an object. Of one that comes or goes as a whole they are those that
 * somebody chose: what it has by default, and the name that stands above it, say nothing.
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

/** The value that a change tells of, without what members have by default: that is most of them, and says nothing. */
export function reportedOf(path: string, value: unknown): unknown {
  if (/(^|\.)members\[[^\]]+\]$/.test(path)) return differing(value, MEMBER);
  const isList = /(^|\.)members$/.test(path) && Array.isArray(value);
  return isList ? value.map((each) => differing(each, MEMBER)) : value;
}

/** A hash is never told. */
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

/** Tells whether a value is an instant as the configuration writes it, which people read as how far it is from now. */
export function isInstant(value: unknown): value is string {
  return typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value);
}
