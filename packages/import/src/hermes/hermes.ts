import { hermesPartsSchema } from './schema.ts';
import type { FieldError } from '../../../../src/config/field-error.ts';
import { FOREIGN_FIELDS } from '../../../../src/config/own-config.ts';
import { readWithoutWrong, freeName, groupNameOf, type Converted } from '../groups.ts';
import { TIER_MAX, type GroupInput } from '../members.ts';
import { FALLBACK_AFTER_MS, HermesReading, type Spill, type Used } from './reading.ts';

/** Distinguishes a document of Hermes from others with a field `model`. */
export function isHermes({ model, ...rest }: Readonly<Record<string, unknown>>): boolean {
  if (typeof model === 'object' && model !== null && !('rate_limit' in rest)) return true;
  const fields: readonly string[] = FOREIGN_FIELDS.hermes;
  return Object.keys(rest).some((name) => fields.includes(name));
}

/**
 * Converts the providers of Hermes to upstreams and groups: limits of concurrent calls become slots, pools of keys
 * become members, and fallbacks become spill targets. Hermes itself stays as it is, with base URLs of Headgate.
 */
export function convertHermes(document: unknown): Converted {
  const omitted: FieldError[] = [];
  const data = readWithoutWrong(hermesPartsSchema, document, '', omitted, ([part, name]) => {
    if (part === undefined) return null;
    return name === undefined ? [part] : [part, name];
  });
  if (data === null) return { ok: false, errors: omitted };
  const reading = new HermesReading(data, omitted);
  const main = reading.main();
  const named = reading.named();
  const pools = reading.pools();
  const used = new Map<string, Used>();
  for (const each of [...(main === null ? [] : [main]), ...named, ...pools]) {
    const before = used.get(each.place.id);
    if (before === undefined) used.set(each.place.id, each);
    else omitted.push(...conflictOf(before, each));
    reading.noteAddress(each);
  }
  const fallbacks = reading.fallbacks(main);
  const groups: GroupInput[] = [];
  const paths: string[] = [];
  for (const each of used.values()) {
    const isMain = each.place.id === main?.place.id;
    for (const group of groupsOf(each, isMain, isMain ? fallbacks : [], reading)) {
      const name = freeName(group.name, (wanted) =>
        groups.some(({ name: taken }) => taken === wanted),
      );
      groups.push({ ...group, name });
      paths.push(each.at);
    }
  }
  return {
    ok: true,
    config: { upstreams: reading.upstreams([...used.keys()], fallbacks), groups },
    notes: reading.allNotes(),
    omitted,
    pathOf: (path) => {
      const [, group] = /^groups\[(\d+)\]/.exec(path) ?? [];
      return group === undefined ? path : (paths[Number(group)] ?? path);
    },
  };
}

/** Finds settings of an endpoint that differ from those of another endpoint with the same address. */
function conflictOf(before: Used, other: Used): FieldError[] {
  if (before.entryAt !== null && before.entryAt === other.entryAt) return [];
  const fields = ['secrets', 'slots', 'startsPerS', 'models'] as const;
  const isOtherwise = fields.some((field) => {
    const stated = JSON.stringify(other[field]);
    return !['null', '[]', JSON.stringify(before[field])].includes(stated);
  });
  if (!isOtherwise) return [];
  const message = `has the same address as ${before.at} but another key or limit, and one upstream has one of each. Create an upstream for it, and point Hermes there`;
  return [{ path: other.at, message }];
}

/** Returns the groups of an upstream. Empty without a setting that needs a group. */
function groupsOf(
  { place, secrets, isInTurn, slots, startsPerS, models }: Used,
  isMain: boolean,
  spills: readonly Spill[],
  reading: HermesReading,
): GroupInput[] {
  const { id } = place;
  const limits = {
    ...(slots === null ? {} : { max_concurrency: slots }),
    ...(startsPerS === null ? {} : { starts_per_s: startsPerS }),
  };
  const hasMembers = secrets.length > 1;
  const isStated = isMain || hasMembers || Object.keys(limits).length > 0;
  if (!hasMembers) reading.setAuth(place, secrets);
  if (hasMembers && slots !== null) {
    reading.notes.add(
      `max_concurrent ${slots} of ${id} applies to each of its ${secrets.length} keys.`,
    );
  }
  const whole: GroupInput = {
    name: groupNameOf(id),
    match: { upstreams: [id] },
    ...(hasMembers
      ? {
          members: secrets.map((secret, index) => ({
            upstream: id,
            secret,
            limits,
            ...(isInTurn || index === 0 ? {} : { tier: Math.min(TIER_MAX, index + 1) }),
          })),
        }
      : { limits }),
    ...(spills.length === 0
      ? {}
      : { on_saturated: { spill_to: [...spills], after_ms: FALLBACK_AFTER_MS } }),
  };
  const ofModels = models.map(([model, own]): GroupInput => ({
    name: groupNameOf(`${id}-${model}`) || groupNameOf(id),
    match: { upstreams: [id], models: [model] },
    limits: { max_concurrency: own * Math.max(1, secrets.length) },
  }));
  return [...(isStated ? [whole] : []), ...ofModels];
}
