// Fields of older releases that no longer exist.

/** Replacements of removed fields, by the last two names of their path. */
const INSTEAD: ReadonlyMap<string, string> = new Map([
  [
    'on_saturated.order',
    'was removed, because upstreams are tried in the listed order; to prefer the upstream with the most room, the cheapest or the nearest one, use members with tiers and weights',
  ],
]);

/** Returns what replaces a removed field. null if the field never existed. */
export function insteadOf(path: readonly PropertyKey[]): string | null {
  const names = path.filter((part) => typeof part === 'string');
  return INSTEAD.get(names.slice(-2).join('.')) ?? null;
}

/**
 * Removes old fields without an effect from a whole document, because an export of an older release has every default.
 */
export function withoutOldDefaults(document: unknown): unknown {
  return withoutSwitches(withoutOrders(document, (order) => order === 'listed'));
}

export function withoutGone(stored: unknown): unknown {
  return withoutSwitches(withoutOrders(stored, () => true));
}

/** Converts `track_usage` of releases in which it was a switch. Off was the default and needs no value now. */
function withoutSwitches(document: unknown): unknown {
  if (!isRecord(document) || !Array.isArray(document['groups'])) return document;
  const groups = document['groups'].map((group: unknown) => {
    if (!isRecord(group) || typeof group['track_usage'] !== 'boolean') return group;
    const { track_usage: isOn, ...rest } = group;
    return isOn ? { ...rest, track_usage: 'always' } : rest;
  });
  return { ...document, groups };
}

/** Removes the selected orders of spill. Values with another shape stay as they are. */
function withoutOrders(document: unknown, isMeant: (order: unknown) => boolean): unknown {
  if (!isRecord(document) || !Array.isArray(document['groups'])) return document;
  const groups = document['groups'].map((group: unknown) => {
    if (!isRecord(group) || !isRecord(group['on_saturated'])) return group;
    const { order, ...rest } = group['on_saturated'];
    return isMeant(order) ? { ...group, on_saturated: rest } : group;
  });
  return { ...document, groups };
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
