import { METHODS } from '../../../src/contract/methods.ts';
import { groupNameOf } from '../../../src/config/foreign-groups.ts';
import type { GroupInput } from '../../../src/config/foreign-members.ts';
import type { FieldError } from '../../../src/config/field-error.ts';
import { groupSchema } from '../../../src/contract/config/group.ts';
import { classify } from '../../../src/upstream/operation/operation.ts';
import { atMost, switchOf, type Flags } from './read-flags.ts';

/** Maximum slots of a group. `apply` refuses more. */
export const SLOTS_MAX = 100_000;

/** Name of a pool without a name, or whose name has no letter or digit. */
const DEFAULT_NAME = 'shaped';

type Method = (typeof METHODS)[number];

/** A route of the shaper, as `-limit` gives it. */
interface ShaperRoute {
  readonly written: string;
  readonly method: Method;
  readonly path: string;
  /** Word of the operation that calls of the route ask for. Null: none that takes a slot by itself. */
  readonly operation: string | null;
  /** API shape of the route. Null: it is of none that is known. */
  readonly shape: string | null;
}

/** A pool of slots there: a group here. */
export interface ShaperPool {
  readonly name: string;
  /** Null: those of `-concurrency`. */
  readonly slots: number | null;
  readonly match: NonNullable<GroupInput['match']>;
  /** API shapes of its routes. */
  readonly shapes: readonly string[];
}

/** Makes the pools of all routes. Routes without a number or a name share the one of -concurrency. */
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
    const { group, slots: asked } = parsed;
    const slots = asked === null ? null : atMost(asked, SLOTS_MAX, `-limit "${route}"`, notes);
    const own = slots === null ? DEFAULT_NAME : parsed.route.path;
    const name = groupNameOf(group ?? own) || DEFAULT_NAME;
    const pool = pools.get(name) ?? { slots: null, routes: [] };
    if (pool.slots !== null && slots !== null && pool.slots !== slots) {
      notes.push(
        `-limit "${route}": the group ${name} has ${pool.slots} already, and keeps that limit.`,
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
        `The group ${name} has routes of several methods, and takes calls of each method by all of its paths.`,
      );
    }
    return { name, slots, match, shapes: [...new Set(routes.flatMap(({ shape }) => shape ?? []))] };
  });
}

/**
 * Makes what a group of routes matches. Routes that are all operations match by them, whatever path a client has for
 * them. Otherwise they match by their paths, as there: a pattern is the end of a path.
 */
function matchOf(routes: readonly ShaperRoute[]): ShaperPool['match'] {
  const operations = routes.flatMap(({ operation }) => operation ?? []);
  if (operations.length === routes.length) return { operations: [...new Set(operations)] };
  return {
    paths: [...new Set(routes.flatMap(({ path }) => globsOf(path)))],
    methods: [...new Set(routes.map(({ method }) => method))],
  };
}

/** Writes a pattern as globs: it is the end of a path there. A verb may stand behind a colon, as Gemini's do. */
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

/** Takes a route apart: `POST /v1/messages:4@group`, or the group first, as people write it too. */
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
    return { path: at, message: `${verb} is no method whose calls can take a slot` };
  }
  const isPath = groupSchema.shape.match.safeParse({ paths: globsOf(path) }).success;
  if (!isPath) return { path: at, message: 'is no path that a group can name' };
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
    // None is no number there, and would let nothing through here.
    slots: Number(slots) || null,
  };
}

/** Finds the operation that a route asks for; routes are parts of paths there. Null: it takes no slot by itself. */
function operationOf(path: string): ReturnType<typeof classify> | null {
  const readings = [path, `/v1${path}`, `/v1/models/any:${path.slice(1)}`];
  for (const reading of readings) {
    const operation = classify('POST', reading, new URLSearchParams(), 'openai');
    if (operation.limited) return operation;
  }
  return null;
}
