import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { DIALECTS } from '../../../src/contract/http.ts';
import type { FieldError } from '../../../src/config/field-error.ts';
import {
  groupNameOf,
  type Converted,
  ForeignSecrets,
} from '../../../packages/import/src/groups.ts';
import type { GroupInput } from '../../../packages/import/src/members.ts';
import {
  addressProblem,
  MadeUpstreams,
  placeAt,
  type ForeignTarget,
} from '../../../packages/import/src/targets.ts';
import { poolsOf, SLOTS_MAX } from './pools.ts';
import {
  countOf,
  lastOf,
  readSections,
  unreadableFlags,
  type Flags,
  type UpstreamFlags,
} from './read-flags.ts';
import { settingsOf } from './settings.ts';

/** The shaper's default for -concurrency, which applies to routes without a number of slots. */
const DEFAULT_SLOTS = 4;

/** Flags that need no counterpart, with the feature that replaces each one. */
const ELSEWHERE: ReadonlyMap<string, string> = new Map(
  Object.entries({
    bind: 'is --port and --host of headgate serve',
    tui: 'is the dashboard at /admin, and headgate status',
    'metrics-bind': 'is /metrics',
    'adaptive-headroom': 'is not needed: limits adapt to rejections by the upstream (adaptive)',
    'adaptive-headroom-window':
      'is not needed: limits adapt to rejections by the upstream (adaptive)',
    'retry-skip-429': 'is not needed: a rate-limited call returns to the queue',
  }),
);

/** Why flags are not imported. Flags that are not listed have no counterpart. */
const WHY_NOT: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'cb-max-penalty':
      'has no counterpart: each failure holds its slot for the same time (holds.failure_hold_ms)',
    'retry-wait-min': 'has no counterpart: a retried call waits in the queue',
    'retry-wait-max': 'has no counterpart: a retried call waits in the queue',
    'retry-min-delay':
      'has no counterpart: a slot stays unavailable after a failure instead (holds.failure_hold_ms)',
    'upstream-disable-keep-alives': 'has no counterpart: the platform manages connections',
    'transcode-model': 'renames a model. Add members with their own models to the group instead',
    'transcode-profile': 'renames a model. Add members with their own models to the group instead',
    'model-table': 'maps models to providers. List the models in `models` of each upstream instead',
  }),
);

const TAKEN = new Set(
  (
    'upstream name prefix provider limit limit-all concurrency global-concurrency queue-timeout queue-depth ' +
    'queue-comments retry retry-max-body-mb release-cooldown cancel-cooldown failure-hold version h help ' +
    'circuit-breaker cb-threshold cb-window cb-open-timeout cb-max-open-timeout cb-penalty auth-source auth-mode'
  ).split(' '),
);

interface ShaperParts {
  readonly made: MadeUpstreams;
  readonly secrets: ForeignSecrets;
  readonly notes: string[];
  readonly omitted: FieldError[];
}

/**
 * Converts the command line of the concurrency shaper, or a script that contains it, into upstreams and groups. Each
 * `--provider` section is an upstream. Without sections there is one.
 */
export function convertFlags(text: string): Converted {
  const sections = readSections(text);
  const to: ShaperParts = {
    made: new MadeUpstreams(),
    secrets: new ForeignSecrets(),
    notes: [],
    omitted: [],
  };
  const errors: FieldError[] = [];
  const groups = sections.flatMap((section) => {
    const base = lastOf(section.flags, 'upstream') ?? '';
    if (addressProblem(base) === null) return groupsOf(section, base, sections.length > 1, to);
    const where = section.name === null ? '' : ` in --provider=${section.name}`;
    const message = `expected the command line of the shaper, with -upstream and an http or https URL${where}`;
    errors.push({ path: '-upstream', message });
    return [];
  });
  if (groups.length === 0) return { ok: false, errors };
  const upstreams: NonNullable<ConfigInput['upstreams']> = to.made.list;
  return {
    ok: true,
    config: { upstreams, groups },
    notes: [...new Set([...to.notes, ...to.secrets.notes])],
    omitted: [...errors, ...to.omitted],
  };
}

function groupsOf(section: UpstreamFlags, base: string, isOneOfSeveral: boolean, to: ShaperParts) {
  const { flags } = section;
  const { notes, omitted } = to;
  const pools = poolsOf(flags, notes, omitted);
  const place = upstreamAt(
    base,
    pools.flatMap(({ shapes }) => shapes),
    to,
  );
  const { id } = place;
  const settings = settingsOf(flags, notes);
  const shared = countOf(flags, 'concurrency', SLOTS_MAX, notes) || DEFAULT_SLOTS;
  const label = lastOf(flags, 'name') ?? section.name ?? id;
  const nameOf = (name: string): string =>
    isOneOfSeveral ? groupNameOf(`${label}-${name}`) || name : name;
  const groups = pools.map(({ name, slots, match }): GroupInput => ({
    name: nameOf(name),
    match: { upstreams: [id], ...match },
    limits: { max_concurrency: slots ?? shared },
    ...settings,
  }));
  const all = countOf(flags, 'global-concurrency', SLOTS_MAX, notes) ?? 0;
  if (all > 0) {
    const isTaken = pools.some(({ name }) => name === `${id}-all`);
    const name = groupNameOf(isTaken ? `${id}-total` : `${id}-all`);
    notes.push(
      `-global-concurrency ${all} became group \`${name}\`. Calls that need no slot, such as model lists, do not count towards it.`,
    );
    groups.push({
      name,
      match: { upstreams: [id] },
      limits: { max_concurrency: all },
      ...settings,
    });
  }
  const prefix = lastOf(flags, 'prefix');
  if (prefix !== undefined) {
    notes.push(`-prefix ${prefix}: clients call /${id}${pathBehind(place, base)}/… instead.`);
  }
  setAuth(flags, place, to);
  omitted.push(...unreadableFlags(flags));
  listUnused(flags, to);
  return groups;
}

/** Finds the upstream with a URL. The dialect of an unknown upstream is that of its routes. */
function upstreamAt(
  base: string,
  shapes: readonly string[],
  { made, notes }: ShaperParts,
): ForeignTarget {
  const known = placeAt(base);
  const [shape, ...others] = new Set(shapes);
  const ofRoutes = others.length > 0 ? undefined : DIALECTS.find((dialect) => dialect === shape);
  const isUnknown = known.upstream !== undefined && known.dialect === 'openai';
  const place = made.add(isUnknown && ofRoutes !== undefined ? placeAt(base, ofRoutes) : known);
  if (place.upstream !== undefined) {
    notes.push(
      `${base} became upstream \`${place.id}\` with the assumed dialect ${place.dialect}.`,
    );
  } else if (pathBehind(place, base) !== '') {
    notes.push(
      `${base} is upstream \`${place.id}\`: clients call /${place.id}${pathBehind(place, base)}/….`,
    );
  }
  return place;
}

/** Returns the path between the id of an upstream and the route. The base URL of a built-in upstream has no path. */
function pathBehind({ upstream }: ForeignTarget, base: string): string {
  return upstream === undefined ? new URL(base).pathname.replace(/\/+$/, '') : '';
}

/** Imports the key that the shaper sends, as a reference to a secret. */
function setAuth(
  flags: Flags,
  { id }: ForeignTarget,
  { made, secrets, omitted }: ShaperParts,
): void {
  const source = lastOf(flags, 'auth-source') ?? '';
  const [, variable] = /^env:(\w+)$/.exec(source) ?? [];
  const [, file] = /^file:(.+)$/.exec(source) ?? [];
  if (variable !== undefined) made.setAuth(id, { secret: secrets.ofVariable(variable) });
  else if (file !== undefined) {
    made.setAuth(id, { secret: secrets.ofOther(`file ${file}`, `${id}_API_KEY`, '-auth-source') });
  } else if (!['', 'none', 'client'].includes(source)) {
    const message = "expected env:NAME or file:PATH. Calls use the caller's key instead";
    omitted.push({ path: '-auth-source', message });
  }
  const mode = lastOf(flags, 'auth-mode');
  if (mode !== undefined && !['auto', 'none'].includes(mode)) {
    const message = `${mode} is not imported. The dialect of the upstream determines the header of the key`;
    omitted.push({ path: '-auth-mode', message });
  }
}

function listUnused(flags: Flags, { notes, omitted }: ShaperParts): void {
  for (const name of flags.keys()) {
    if (TAKEN.has(name)) continue;
    const elsewhere = ELSEWHERE.get(name);
    if (elsewhere !== undefined) notes.push(`-${name} ${elsewhere}.`);
    else if (!omitted.some(({ path }) => path === `-${name}`)) {
      omitted.push({ path: `-${name}`, message: WHY_NOT.get(name) ?? 'has no counterpart' });
    }
  }
}
