import { parseArgsStringToArgv } from 'string-argv';
import type { ConfigInput } from '../../src/contract/config/config.ts';
import { groupNameOf, type Converted } from '../../src/config/foreign-groups.ts';
import { upstreamSchema } from '../../src/contract/config/upstream-config.ts';
import { COOLDOWN_MAX_MS } from '../../src/core/words/settings.ts';
import { PROVIDERS } from '../../src/providers/index.ts';
import { classify } from '../../src/upstream/operation/operation.ts';

type GroupInput = NonNullable<ConfigInput['groups']>[number];

/** Slots of the pool of routes that name none, where nothing else is said. */
const DEFAULT_SLOTS = 4;

/** How long a call waits there, where nothing else is said. */
const DEFAULT_WAIT_MS = 30_000;

/** Maximum values of a group in Headgate. `apply` refuses larger ones. */
const SLOTS_MAX = 100_000;
const WAIT_MAX_MS = 3_600_000;
const RETRIES_MAX = 10;
const BREAKER_CALLS_MAX = 100;
const BREAKER_MS_MAX = 3_600_000;

/** Name of a pool without a name, or whose name has no letter or digit. */
const DEFAULT_NAME = 'shaped';

/** Flags that stand alone. */
const SWITCHES = new Set([
  'tui',
  'version',
  'adaptive-headroom',
  'circuit-breaker',
  'retry-skip-429',
  'upstream-disable-keep-alives',
]);

/** Flags that need no counterpart, and what does their work here. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  bind: 'is --port and --host of headgate serve',
  tui: 'is the dashboard at /admin, and headgate status',
  'adaptive-headroom': 'is not needed: a limit follows what the upstream refuses (adaptive)',
  'adaptive-headroom-window': 'is not needed: a limit follows what the upstream refuses (adaptive)',
  'retry-skip-429': 'is not needed: a call that is refused for its rate waits in the queue again',
};

/** A pool of slots there: a group here. */
interface Pool {
  slots: number | null;
  readonly operations: Set<string>;
  isForAll: boolean;
}

/** Turns the command line of the concurrency shaper, or a script with it, into groups of its one upstream. */
export function convertFlags(text: string): Converted {
  const flags = readFlags(text);
  const base = flags.get('upstream')?.at(-1);
  if (base === undefined || !/^https?:$/.test(URL.parse(base)?.protocol ?? '')) {
    const message =
      'expected the command line of the shaper, with -upstream and an http or https URL';
    return { ok: false, errors: [{ path: '-upstream', message }] };
  }
  const notes: string[] = [];
  const { id, upstreams } = upstreamAt(base, notes);
  const pools = poolsOf(flags, notes);
  const settings = settingsOf(flags, notes);
  const shared = countOf(flags, 'concurrency', SLOTS_MAX, notes) || DEFAULT_SLOTS;
  const groups = [...pools].map(([name, { slots, operations, isForAll }]): GroupInput => ({
    name,
    match: { upstreams: [id], ...(isForAll ? {} : { operations: [...operations] }) },
    limits: { max_concurrency: slots ?? shared },
    ...settings,
  }));
  const all = countOf(flags, 'global-concurrency', SLOTS_MAX, notes) ?? 0;
  if (all > 0) {
    groups.push({
      name: groupNameOf(pools.has(`${id}-all`) ? `${id}-total` : `${id}-all`),
      match: { upstreams: [id] },
      limits: { max_concurrency: all },
      ...settings,
    });
  }
  return { ok: true, config: { upstreams, groups }, notes: [...notes, ...unusedNotes(flags)] };
}

/** Name of the program: flags before it are those of others in the same script. */
const PROGRAM = /(?:^|[/\\])ai-concurrency-shaper(?:\.exe)?$/;

/** Reads flags as Go writes them: one dash or two, the value behind a space or an equals sign. */
function readFlags(text: string): Map<string, string[]> {
  const script = text.replace(/^\s*#.*$/gm, '').replace(/\\\r?\n/g, ' ');
  const all = parseArgsStringToArgv(script);
  const words = all.slice(all.findLastIndex((word) => PROGRAM.test(word)) + 1);
  const flags = new Map<string, string[]>();
  for (let at = 0; at < words.length; at += 1) {
    const [, name, inline] = /^--?([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(words[at] ?? '') ?? [];
    if (name === undefined) continue;
    const isAlone = SWITCHES.has(name) || inline !== undefined;
    if (!isAlone) at += 1;
    flags.set(name, [...(flags.get(name) ?? []), inline ?? (isAlone ? 'true' : (words[at] ?? ''))]);
  }
  return flags;
}

function upstreamAt(base: string, notes: string[]) {
  const { host } = new URL(base);
  const known = PROVIDERS.find(({ baseUrl }) => baseUrl !== null && new URL(baseUrl).host === host);
  if (known !== undefined) return { id: known.id, upstreams: [] };
  const name = groupNameOf(host).replaceAll(/[._]/g, '-').slice(0, 30);
  const isFree = upstreamSchema.shape.id.safeParse(name).success;
  const id = isFree ? name : `${DEFAULT_NAME}-${name}`.replace(/-+$/, '').slice(0, 30);
  notes.push(`${base} became the upstream "${id}"; its dialect is taken for openai.`);
  return { id, upstreams: [{ id, base_url: base, dialect: 'openai' as const }] };
}

/** Makes the pools of all routes. Routes without a number or a name share the one of -concurrency. */
function poolsOf(flags: ReadonlyMap<string, string[]>, notes: string[]): Map<string, Pool> {
  const pools = new Map<string, Pool>();
  const routes = flags.get('limit') ?? [];
  if (routes.length === 0) {
    return pools.set(DEFAULT_NAME, { slots: null, operations: new Set(), isForAll: true });
  }
  for (const route of routes) {
    const { path, slots: asked, group } = routeOf(route);
    const slots = asked === null ? null : atMost(asked, SLOTS_MAX, `-limit "${route}"`, notes);
    const operation = operationOf(path);
    if (operation === null) {
      notes.push(`-limit "${route}": no call to ${path} takes a slot here.`);
      continue;
    }
    const name = groupNameOf(group ?? (slots === null ? DEFAULT_NAME : path)) || DEFAULT_NAME;
    const pool = pools.get(name) ?? { slots: null, operations: new Set<string>(), isForAll: false };
    if (pool.slots !== null && slots !== null && pool.slots !== slots) {
      notes.push(`-limit "${route}": the group ${name} has ${pool.slots} already, which is kept.`);
    }
    pool.slots ??= slots;
    pool.operations.add(operation);
    pools.set(name, pool);
  }
  return pools;
}

/** Takes a route apart: `POST /v1/messages:4@group`, or the group first, as people write it too. */
function routeOf(route: string) {
  const {
    path = route,
    group = null,
    slots = null,
  } = /^(?:[A-Za-z]+\s+)?(?<path>\/[^@]*?)(?:(?::(?<slots>\d+))?(?:@(?<group>[^:@]+))?|:(?:@(?<group2>[^:@]+)))$/.exec(
    route
      .trim()
      .replace(/@([^:@]+):(\d+)$/, ':$2@$1')
      .replace(/:@/, '@'),
  )?.groups ?? {};
  // None is no number there, and would let nothing through here.
  return { path, group, slots: Number(slots) || null };
}

/** Finds the operation that a route asks for; routes are parts of paths there. Null: it takes no slot. */
function operationOf(path: string): string | null {
  const readings = [path, `/v1${path}`, `/v1/models/any:${path.slice(1)}`];
  for (const reading of readings) {
    const { name, limited } = classify('POST', reading, new URLSearchParams(), 'openai');
    if (limited) return name;
  }
  return null;
}

/** Settings that all its groups share. */
function settingsOf(flags: ReadonlyMap<string, string[]>, notes: string[]): Partial<GroupInput> {
  const holdOf = (name: string): number | null => msOf(flags, name, COOLDOWN_MAX_MS, notes);
  const released = holdOf('release-cooldown');
  const cancelled = holdOf('cancel-cooldown');
  // If the shaper's breaker is enabled, the penalty replaces the failure hold.
  const failed = holdOf('cb-penalty') || holdOf('failure-hold');
  // Any negative number means unlimited there.
  const isEndless = /^-\d+$/.test(flags.get('retry')?.at(-1) ?? '');
  if (isEndless) notes.push(`-retry: ${RETRIES_MAX} retries are the maximum of a group here.`);
  const max = isEndless ? RETRIES_MAX : countOf(flags, 'retry', RETRIES_MAX, notes);
  const wait = msOf(flags, 'queue-timeout', WAIT_MAX_MS, notes);
  if (wait === 0) {
    notes.push('-queue-timeout 0: an hour is the longest that a call may wait here.');
  }
  return {
    queue: { timeout_ms: wait === 0 ? WAIT_MAX_MS : (wait ?? DEFAULT_WAIT_MS) },
    holds: {
      ...(released === null ? {} : { release_cooldown_ms: released }),
      ...(cancelled === null ? {} : { cancel_cooldown_ms: cancelled }),
      ...(failed === null ? {} : { failure_hold_ms: failed }),
    },
    ...(max === null ? {} : { retries: { max } }),
    ...breakerOf(flags, notes),
  };
}

/** Reads the breaker's flags. Flags that are not set keep the defaults of a group. */
function breakerOf(
  flags: ReadonlyMap<string, string[]>,
  notes: string[],
): Pick<GroupInput, 'breaker'> {
  const isOff = /^(?:false|f|0)$/i.test(flags.get('circuit-breaker')?.at(-1) ?? '');
  const msFrom = (name: string, leastMs: number): number | null => {
    const ms = msOf(flags, name, BREAKER_MS_MAX, notes);
    if (ms === null || ms >= leastMs) return ms;
    notes.push(`-${name}: ${leastMs} ms is the minimum of a group here and is used instead.`);
    return leastMs;
  };
  const failures = countOf(flags, 'cb-threshold', BREAKER_CALLS_MAX, notes);
  const windowMs = msFrom('cb-window', 1_000);
  const holdMs = msFrom('cb-open-timeout', 100);
  const holdMaxMs = msFrom('cb-max-open-timeout', 100);
  if (failures !== null) {
    notes.push(
      `-cb-threshold ${failures}: the breaker of a group opens when half of at least ${failures} calls within the window failed (breaker.threshold, breaker.min_calls).`,
    );
  }
  const breaker = {
    ...(isOff && { threshold: null }),
    ...(failures !== null && { min_calls: Math.max(1, failures) }),
    ...(windowMs !== null && { window_ms: windowMs }),
    ...(holdMs !== null && { hold_ms: holdMs }),
    ...(holdMaxMs !== null && { hold_max_ms: holdMaxMs }),
  };
  return Object.keys(breaker).length === 0 ? {} : { breaker };
}

const TAKEN = new Set(
  (
    'upstream limit concurrency global-concurrency queue-timeout retry ' +
    'release-cooldown cancel-cooldown failure-hold version ' +
    'circuit-breaker cb-threshold cb-window cb-open-timeout cb-max-open-timeout cb-penalty'
  ).split(' '),
);

/** Says of each flag that was given and is not taken over what becomes of it. */
function unusedNotes(flags: ReadonlyMap<string, string[]>): string[] {
  return [...flags.keys()]
    .filter((name) => !TAKEN.has(name))
    .map((name) => `-${name} ${ELSEWHERE[name] ?? 'has no counterpart'}.`);
}

/** Reads a count, lowered to its maximum here. Null: it is absent or not a count. */
function countOf(
  flags: ReadonlyMap<string, string[]>,
  name: string,
  max: number,
  notes: string[],
): number | null {
  const written = flags.get(name)?.at(-1);
  if (written === undefined) return null;
  if (/^\d+$/.test(written)) return atMost(Number(written), max, `-${name} ${written}`, notes);
  notes.push(`-${name} ${written}: expected a count. It was left out.`);
  return null;
}

const UNITS_MS: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1_000,
  ms: 1,
  us: 0.001,
  µs: 0.001,
  ns: 0.000_001,
};

const DURATION = /^(?:0|(?:\d+(?:\.\d*)?(?:ms|us|µs|ns|h|m|s))+)$/;

/** Reads a duration as Go writes it, as in `1m30s`, lowered to its maximum here. Null: it is absent or not a duration. */
function msOf(
  flags: ReadonlyMap<string, string[]>,
  name: string,
  maxMs: number,
  notes: string[],
): number | null {
  const written = flags.get(name)?.at(-1);
  if (written === undefined) return null;
  if (!DURATION.test(written)) {
    notes.push(`-${name} ${written}: expected a duration, as in 1m30s. It was left out.`);
    return null;
  }
  const parts = [...written.matchAll(/([\d.]+)([a-zµ]+)/g)];
  const ms = parts.reduce(
    (sum, [, amount, unit = '']) => sum + Number(amount) * (UNITS_MS[unit] ?? 0),
    0,
  );
  // Zero has another meaning than a small value.
  return atMost(ms === 0 ? 0 : Math.max(1, Math.round(ms)), maxMs, `-${name} ${written}`, notes);
}

/** Lowers a value to the maximum, and notes it. */
function atMost(value: number, max: number, flag: string, notes: string[]): number {
  if (value <= max) return value;
  notes.push(`${flag}: ${max} is the maximum of a group here and is used instead.`);
  return max;
}
