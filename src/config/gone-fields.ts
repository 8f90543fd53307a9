/** Fields that configurations of older releases have, and that are none any more. */

/** Words for who writes one, by the field and what it stands in. */
const INSTEAD: ReadonlyMap<string, string> = new Map([
  [
    'on_saturated.order',
    'is no field any more: upstreams are tried as listed. For the place with the most room, the cheapest or the nearest first, give the group members, with tiers and weights',
  ],
]);

/** Tells what takes the place of a field that is gone; null: there never was one. */
export function insteadOf(path: readonly PropertyKey[]): string | null {
  const names = path.filter((part) => typeof part === 'string');
  return INSTEAD.get(names.slice(-2).join('.')) ?? null;
}

/** Takes out of a whole document what is gone and says nothing by now: an export of an older release holds every default. */
export function withoutOldDefaults(document: unknown): unknown {
  return withoutSwitches(withoutOrders(document, (order) => order === 'listed'));
}

/** Takes out of a stored document all that is gone, whatever it says. */
export function withoutGone(stored: unknown): unknown {
  return withoutSwitches(withoutOrders(stored, () => true));
}

/** Translates `track_usage` of releases in which it was a switch. Off was the default, and says nothing by now. */
function withoutSwitches(document: unknown): unknown {
  if (!isRecord(document) || !Array.isArray(document['groups'])) return document;
  const groups = document['groups'].map((group: unknown) => {
    if (!isRecord(group) || typeof group['track_usage'] !== 'boolean') return group;
    const { track_usage: isOn, ...rest } = group;
    return isOn ? { ...rest, track_usage: 'always' } : rest;
  });
  return { ...document, groups };
}

/** Takes out the orders of spill that are meant. Of what has another shape nothing is touched. */
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
