import { METHODS } from '../../../src/contract/http.ts';
import { groupNameOf } from '../../../packages/import/src/groups.ts';
import type { GroupInput } from '../../../packages/import/src/members.ts';
import type { FieldError } from '../../../src/config/field-error.ts';
import { groupSchema } from '../../../src/contract/config/group.ts';
import { plural } from '../../../src/core/words/figures.ts';
import { classify } from '../../../src/upstream/operation/operation.ts';
import { atMost, switchOf, type Flags } from './read-flags.ts';

/** Maximum slots of a group. `apply` rejects more. */
export const SLOTS_MAX = 100_000;

/** Name of a pool whose name is absent or has no letter or digit. */
const DEFAULT_NAME = 'shaped';

type Method = (typeof METHODS)[number];

/** A route of the shaper, as `-limit` defines it. */
interface ShaperRoute {
  readonly written: string;
  readonly method: Method;
  readonly path: string;
  /** Operation of the route's calls. null if it is not one that takes a slot by default. */
  readonly operation: string | null;
  /** API shape of the route. null if it is unknown. */
  readonly shape: string | null;
}

/** A pool of slots in the shaper, which becomes a group. */
export interface ShaperPool {
  readonly name: string;
  /** null means the number of `-concurrency`. */
  readonly slots: number | null;
  readonly match: NonNullable<GroupInput['match']>;
  readonly shapes: readonly string[];
}

/** Returns the pools of all routes. Routes without a number or a name share the pool of -concurrency. */
export function poolsOf(flags: Flags, notes: string[], omitted: FieldError[]): ShaperPool[] {
  const written = flags.get('limit') ?? [];
  if (switchOf(flags, 'limit-all') === true) {
    for (const route of written) {
      const message = 'has no slots of its own, because -limit-all puts every call into one pool';
      omitted.push({ path: `-limit "${route}"`, message });
    }
    const all = { paths: ['*'], methods: [...METHODS] };
    return [{ name: DEFAULT_NAME, slots: null, match: all, shapes: [] }];
  }
  if (written.length === 0) return [{ name: DEFAULT_NAME, slots: null, match: {}, shapes: [] }];
  const pools = new Map<string, { slots: number | null; readonly routes: ShaperRoute[] }>();
  for (const route of written) {
    const parsed = routeOf(route);
    if ('path' in parsed && 'message' in parsed) {
      omitted.push(parsed);
      continue;
    }
    const { group, slots: requested } = parsed;
    const slots =
      requested === null ? null : atMost(requested, SLOTS_MAX, `-limit "${route}"`, notes);
    const own = slots === null ? DEFAULT_NAME : parsed.route.path;
    const name = groupNameOf(group ?? own) || DEFAULT_NAME;
    const pool = pools.get(name) ?? { slots: null, routes: [] };
    if (pool.slots !== null && slots !== null && pool.slots !== slots) {
      notes.push(
        `-limit "${route}": group \`${name}\` already has ${plural(pool.slots, 'slot')} and keeps that limit.`,
      );
    }
    pool.slots ??= slots;
    pool.routes.push(parsed.route);
    pools.set(name, pool);
  }
  return [...pools].map(([name, { slots, routes }]) => {
    const match = matchOf(routes);
    if ((match.methods?.length ?? 0) > 1) {
      notes.push(
        `Group \`${name}\` has routes with several methods. It matches each method on all of its paths.`,
      );
    }
    return { name, slots, match, shapes: [...new Set(routes.flatMap(({ shape }) => shape ?? []))] };
  });
}

/**
 * Returns the match rules of a group of routes. If every route is an operation, the group matches operations on any
 * path. Otherwise it matches paths, as the shaper does: a pattern matches the end of a path.
 */
function matchOf(routes: readonly ShaperRoute[]): ShaperPool['match'] {
  const operations = routes.flatMap(({ operation }) => operation ?? []);
  if (operations.length === routes.length) return { operations: [...new Set(operations)] };
  return {
    paths: [...new Set(routes.flatMap(({ path }) => globsOf(path)))],
    methods: [...new Set(routes.map(({ method }) => method))],
  };
}

/** Converts a pattern, which matches the end of a path, into globs. A verb may follow a colon, as in Gemini's paths. */
function globsOf(path: string): string[] {
  if (path === '/') return ['*'];
  const isOneSegment = /^\/[^/:]+$/.test(path);
  return [`*${path}`, ...(isOneSegment ? [`*:${path.slice(1)}`] : [])];
}

interface ParsedRoute {
  readonly route: ShaperRoute;
  readonly group: string | null;
  readonly slots: number | null;
}

/** Parses a route such as `POST /v1/messages:4@group`. The group may also precede the number. */
function routeOf(written: string): ParsedRoute | FieldError {
  const {
    method: verb = 'POST',
    path: raw = written,
    group = null,
    slots = null,
  } = /^(?:(?<method>[A-Za-z]+)\s+)?(?<path>\/[^@]*?)(?:(?::(?<slots>\d+))?(?:@(?<group>[^:@]+))?)$/.exec(
    written
      .trim()
      .replace(/@([^:@]+):(\d+)$/, ':$2@$1')
      .replace(/:@/, '@'),
  )?.groups ?? {};
  const path = raw.replaceAll(/\/{2,}/g, '/').replace(/(?<=.)\/$/, '');
  const method = METHODS.find((each) => each === verb.toUpperCase());
  const at = `-limit "${written}"`;
  if (method === undefined) {
    return { path: at, message: `${verb} is not a method whose calls can take a slot` };
  }
  const isPath = groupSchema.shape.match.safeParse({ paths: globsOf(path) }).success;
  if (!isPath) return { path: at, message: 'is not a path that a group can match' };
  const known = method === 'POST' && path !== '/' ? operationOf(path) : null;
  return {
    route: {
      written,
      method,
      path,
      operation: known?.limited === true ? known.name : null,
      shape: known?.limited === true ? known.shape : null,
    },
    group,
    // In the shaper, 0 means no number. A group with 0 slots would grant nothing.
    slots: Number(slots) || null,
  };
}

/**
 * Finds the operation of a route, which may be a part of a path. null if calls of the route take no slot by default.
 */
function operationOf(path: string): ReturnType<typeof classify> | null {
  const readings = [path, `/v1${path}`, `/v1/models/any:${path.slice(1)}`];
  for (const reading of readings) {
    const operation = classify('POST', reading, new URLSearchParams(), 'openai');
    if (operation.limited) return operation;
  }
  return null;
}
