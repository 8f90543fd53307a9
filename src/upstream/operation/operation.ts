import type { Dialect } from '../../contract/http.ts';
import { OPAQUE, OPERATIONS, type OperationRow } from './operations-table.ts';
import { readingsOf } from './readings.ts';

/** What a call is, from its method and path. */

type ModelSource =
  | { readonly from: 'path'; readonly value: string }
  /** The top-level field `model` of a JSON body, or a form field of that name, depending on the Content-Type. */
  | { readonly from: 'body' }
  | { readonly from: 'none' };

export interface Operation {
  /** Name that groups match by: `chat`, `messages`, `embeddings` … */
  readonly name: string;
  /** The dialect of Headgate's error responses to this call. */
  readonly shape: Dialect;
  /** Whether the call takes a slot. */
  readonly limited: boolean;
  /**
   * Set if the call takes a slot because a group names its path, in all readings of it. Absent if no group names it, or
   * a group names only some readings.
   */
  readonly isNamed?: true;
  readonly model: ModelSource;
  /** The method that the call counts as if the request names another one. Absent for its own. */
  readonly countsAs?: string;
  /** How the call uses a WebSocket. Absent if it uses none. */
  readonly socket?: SocketUse;
}

/**
 * Uses of a WebSocket. `session`: holds a slot from the upgrade to the close. `turns`: each message that requests a
 * response is a call of its own, and the connection takes no slot. `unserved`: the route is not available over
 * WebSocket.
 */
type SocketUse = 'session' | 'turns' | 'unserved';

/** Azure's older API has a deployment in the path, followed by OpenAI's routes. */
const AZURE_DEPLOYMENT = /(?:^|\/openai)\/deployments\/(?<model>[^/]+)(?<rest>\/.+)$/i;

/** Routes with a model in front of them. These servers ignore the model in the body. */
const NAMED_BEFORE: readonly RegExp[] = [
  AZURE_DEPLOYMENT,
  // LiteLLM, as OpenAI did in the past.
  /\/engines\/(?<model>[^/]+(?:\/[^/]+)??)(?<rest>\/(?:(?:chat\/)?completions|embeddings))$/i,
  // Databricks.
  /\/serving-endpoints\/(?<model>[^/]+)(?<rest>\/invocations)$/i,
  // Hugging Face.
  /\/hf-inference\/models\/(?<model>[^/]+(?:\/[^/]+)??)(?<rest>\/v1\/.+)$/i,
  // Vertex, except the endpoint that serves all of its models.
  /\/(?<model>endpoints\/(?!openapi\/)[^/]+)(?<rest>\/chat\/completions)$/i,
];

/** Segments that determine the dialect of an unknown path, for upstreams with several dialects. */
const SHAPE_HINTS: readonly (readonly [RegExp, Dialect])[] = [
  [/\/anthropic\//, 'anthropic'],
  [/\/(?:openai|compatible-mode|compatibility)\//, 'openai'],
];

const NO_MODEL: ModelSource = { from: 'none' };

export const UNKNOWN_NAME = 'other';

export const ADMINISTRATION_NAME = 'administration';

/**
 * Determines what a call is from its method and its path relative to the upstream's base URL. Only calls that generate
 * take a slot. Unknown calls take none, because a slot held for a poll or an upload would starve generation. Of an
 * opaque upstream nothing is known, so every call with a body takes one.
 */
export function classify(
  method: string,
  path: string,
  query: URLSearchParams,
  dialect: Dialect,
): Operation {
  if (dialect === 'opaque') {
    return { name: OPAQUE, shape: 'opaque', limited: hasBody(method), model: NO_MODEL };
  }
  const plain = plainPath(path);
  const plainOperation = operationAt(method, plain, dialect);
  // Use the most likely reading in which the call takes a slot. A decorated model name must not change the operation.
  const { isDeployment, ...operation } =
    readingsOf(plain)
      .map((reading) => operationAt(method, reading, dialect))
      .find(({ limited }) => limited) ?? plainOperation;
  const isAzure = isDeployment || query.has('api-version');
  return isAzure && operation.shape === 'openai' ? { ...operation, shape: 'azure' } : operation;
}

/**
 * The models, and locations of models, that servers may read in the path of a call that takes a slot. If there are
 * several, the call counts as one of them, and the upstream may serve another.
 */
export function modelsInReadings(
  method: string,
  path: string,
  dialect: Dialect,
): readonly ModelSource[] {
  if (dialect === 'opaque') return [];
  const plain = plainPath(path);
  const readings = readingsOf(plain);
  const isNamedTwice = NAMED_TWICE.test(plain);
  if (readings.length === 0 && !isNamedTwice) return [];
  const places = [plain, ...readings]
    .map((reading) => operationAt(method, reading, dialect))
    .flatMap(({ limited, model }) => (limited && model.from !== 'none' ? [model] : []));
  if (isNamedTwice) places.push(...[...plain.matchAll(NAMES)].map(namedBy));
  const byValue = new Map(places.map((place) => [valueOf(place), place]));
  return [...byValue.values()];
}

/** Segments that precede a model. If a path has two of them, servers may route by either. */
const NAMES = /\/(?:deployments|engines|serving-endpoints|models?)\/([^/:]+)/gi;
const NAMED_TWICE =
  /\/(?:deployments|engines|serving-endpoints|models?)\/.+\/(?:deployments|engines|serving-endpoints|models?)\//i;

/** The models in the segments of a path, in any reading. */
export function modelsInPath(path: string): readonly string[] {
  const plain = plainPath(path);
  const named = [plain, ...readingsOf(plain)].flatMap((each) =>
    [...each.matchAll(NAMES)].map((match) => namedBy(match).value),
  );
  return [...new Set(named)];
}

/** Segments that precede the id of a stored object with a model: a run, a video, an agent, a prompt, an app. */
const STORED_WITH_MODEL =
  /\/((?:agents?|applications?|apps?|assistants?|bots?|conversations|deployments?|endpoints?|engines?|fine[_-]?tun[a-z]*|flows?|interactions|models?|presets?|prompts?|reasoningEngines|responses|runs|threads|videos?|workflows?)\/[^/:]+)/i;

/** Words in place of an id, in paths that do not name a stored object. */
const NO_ID = /\/(?:compact|completions|generations(?:\/jobs)?|runs)$/i;

/**
 * Finds a stored object with its own model in a path, as in `videos/video_1`. It counts only if the call names no model
 * otherwise. Returns null if no reading of the path names one.
 */
export function referenceInPath(path: string): string | null {
  const plain = plainPath(path);
  const found = [plain, ...readingsOf(plain)].map(
    (each) => STORED_WITH_MODEL.exec(each.replace(NO_ID, ''))?.[1],
  );
  return found.find((each) => each !== undefined) ?? null;
}

function namedBy([, name = '']: readonly string[]): {
  readonly from: 'path';
  readonly value: string;
} {
  return { from: 'path', value: decode(name) };
}

function valueOf(place: ModelSource): string {
  return place.from === 'path' ? `path ${place.value}` : place.from;
}

/**
 * Names of the routes that must be open for a call with the operator's key. These are the operations without a slot
 * that any server may read the path as. Administration and unknown routes are never open.
 */
export function neededRoutes(method: string, path: string, dialect: Dialect): readonly string[] {
  const plain = plainPath(path);
  const needed = [plain, ...readingsOf(plain)].map((each) => neededFor(method, each, dialect));
  return [...new Set(needed.filter((name) => name !== null))];
}

/**
 * Routes that administer an account, at any position in the path, and routes that choose the organization that pays
 * (GitHub's `/orgs/{org}/inference/…`).
 */
const ADMINISTRATION =
  /\/(?:organizations?|orgs|admin_api_keys|api[_-]?keys?|keys?|invites|users?|members|permissions|roles|billing|balance|credits|costs|usage|service_accounts|audit_logs|certificates|projects(?!\/[^/]+\/locations\/))(?:\/|$)/i;

function neededFor(method: string, path: string, dialect: Dialect): string | null {
  if (ADMINISTRATION.test(path)) return ADMINISTRATION_NAME;
  if (dialect === 'opaque') return hasBody(method) ? null : OPAQUE;
  const { row } = rowAt(namedBefore(path)?.rest ?? path, dialect);
  if (row === null) return UNKNOWN_NAME;
  if (row.limited && method === 'POST') return null;
  if (row.openBy.includes(method)) return null;
  // With another method, it is a route that no row describes.
  return row.access === 'open' ? UNKNOWN_NAME : row.name;
}

function hasBody(method: string): boolean {
  return method === 'POST' || method === 'PUT' || method === 'PATCH';
}

/** Some clients encode the colon before Gemini's verb. */
function plainPath(path: string): string {
  return withoutTrailingSlashes(path.replace(/%3a/gi, ':'));
}

function operationAt(
  method: string,
  path: string,
  dialect: Dialect,
): Operation & { readonly isDeployment: boolean } {
  const named = namedBefore(path);
  const operation = lookUp(method, named?.rest ?? path, dialect);
  const isDeployment = AZURE_DEPLOYMENT.test(path);
  if (named === null || !operation.limited) return { ...operation, isDeployment };
  const model = { from: 'path', value: decode(named.model) } as const;
  return { ...operation, isDeployment, model };
}

/** Splits a path that names a model in front of the route. Returns null for other paths. */
function namedBefore(path: string): { readonly model: string; readonly rest: string } | null {
  for (const pattern of NAMED_BEFORE) {
    const { model, rest } = pattern.exec(path)?.groups ?? {};
    if (model !== undefined && rest !== undefined) return { model, rest };
  }
  return null;
}

function rowAt(
  path: string,
  dialect: Dialect,
): { readonly row: OperationRow | null; readonly match: RegExpExecArray | null } {
  for (const row of OPERATIONS) {
    if (row.only !== undefined && row.only !== dialect) continue;
    const match = row.path.exec(path);
    if (match !== null) return { row, match };
  }
  return { row: null, match: null };
}

/** Whether a path names a deployment, as in Azure's older API. */
export function isDeploymentPath(path: string): boolean {
  return AZURE_DEPLOYMENT.test(path);
}

interface RouteInPath {
  readonly name: string;
  /** null for the dialect of the upstream. */
  readonly shape: Dialect | null;
  /** Whether a POST generates there. */
  readonly limited: boolean;
  /** Positions in the path, without a trailing slash. */
  readonly start: number;
  readonly end: number;
}

/** Finds the route in a path without other readings. Returns null if no row matches, or the upstream is opaque. */
export function routeIn(path: string, dialect: Dialect): RouteInPath | null {
  if (dialect === 'opaque') return null;
  const { row, match } = rowAt(path, dialect);
  if (row === null || match === null) return null;
  const { name, shape, limited } = row;
  const end = match.index + withoutTrailingSlashes(match[0]).length;
  return { name, shape, limited, start: match.index, end };
}

function lookUp(method: string, path: string, dialect: Dialect): Operation {
  const { row, match } = rowAt(path, dialect);
  if (row === null) {
    return { name: UNKNOWN_NAME, shape: shapeOf(path, dialect), limited: false, model: NO_MODEL };
  }
  const shape = row.shape ?? shapeOf(path, dialect);
  if (!row.limited || method !== 'POST') {
    return { name: row.name, shape, limited: false, model: NO_MODEL };
  }
  const value = match?.groups?.['model'];
  const isNamed = value !== undefined && match !== null && !isOfRoute(value, match, path);
  const model: ModelSource = isNamed ? { from: 'path', value: decode(value) } : { from: 'body' };
  return { name: row.name, shape, limited: true, model };
}

/** A version of an API, as in Code Assist's `/v1internal:generateContent`. */
const VERSION = /^v\d+(?:p\d+)?(?:alpha|beta|internal)?\d*$/i;

/** Whether the segment before Gemini's verb is a version or a location. The model is then in the body. */
function isOfRoute(segment: string, match: RegExpExecArray, path: string): boolean {
  if (!match[0].startsWith(`/${segment}:`)) return false;
  return VERSION.test(segment) || /\/locations$/i.test(path.slice(0, match.index));
}

/** A regular expression would take quadratic time on a path of slashes. */
export function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

function shapeOf(path: string, dialect: Dialect): Dialect {
  return SHAPE_HINTS.find(([segment]) => segment.test(path))?.[1] ?? dialect;
}

/** Malformed escapes stay unchanged, and the upstream decides about them. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Removes slashes that clients add to a path by mistake when they join a base URL and a route: `/v1//messages`,
 * `/v1/models/`. Slashes of a file key, or of an address inside a path, may have a meaning for an upstream. Everything
 * after the route that the operations table knows therefore stays unchanged, and so does a path without such a route.
 * Rules see the cleaned path, in all readings that are left.
 */

/** Slashes at the front, and around a version that follows them. The base URL ends there. */
const FRONT = /^\/+(?:(v\d\w*)(?:\/+|$))?/i;

/** A version that is repeated, once from the base URL and once from the client. */
const TWICE = /(\/v\d\w*)\1+(?=\/)/gi;

const UNCLEAN = /\/(?:\/|$|(v\d\w*)\/\1\/)/i;

export function isUnclean(path: string): boolean {
  return UNCLEAN.test(path);
}

/** Cleans a path relative to the base URL of an upstream with this dialect. */
export function cleanPath(path: string, dialect: Dialect): string {
  const { text, starts } = collapsed(path);
  const plain = text.endsWith('/') ? text.slice(0, -1) : text;
  const end = plain === '' ? null : (routeIn(plain, dialect)?.end ?? null);
  if (end === null) return path.replace(FRONT, (_, version?: string) => frontOf(path, version));
  const route = plain.slice(0, end).replace(TWICE, '$1');
  return end === plain.length ? route : route + path.slice(starts[end]);
}

function frontOf(path: string, version: string | undefined): string {
  if (version === undefined) return '/';
  return path.toLowerCase().endsWith(`/${version.toLowerCase()}`) ? `/${version}` : `/${version}/`;
}

/** Whether a path repeats the version that its base URL ends with: `/v1/chat/completions` below `https://host/v1`. */
export function repeatsVersion(baseUrl: string, path: string, dialect: Dialect): boolean {
  const end = path.indexOf('/', 1);
  if (end < 0 || !baseUrl.endsWith(path.slice(0, end))) return false;
  if (!/^\/v\d\w*$/i.test(path.slice(0, end)) || new URL(baseUrl).pathname === '/') return false;
  return routeIn(path.slice(end), dialect) !== null;
}

/**
 * Replaces each run of slashes with one, except in an address (`https://`). `starts` are the original positions of the
 * characters.
 */
function collapsed(path: string): { readonly text: string; readonly starts: readonly number[] } {
  const starts: number[] = [];
  for (let index = 0; index < path.length; index += 1) {
    const repeats = path[index] === '/' && path[index - 1] === '/' && path[index - 2] !== ':';
    if (!repeats) starts.push(index);
  }
  return { text: starts.map((index) => path[index]).join(''), starts };
}
