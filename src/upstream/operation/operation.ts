import type { Dialect } from '../../contract/dialect.ts';
import type { OperationRow } from './operation-row.ts';
import { OPAQUE, OPERATIONS } from './operations-table.ts';
import { readingsOf } from './path-readings.ts';

/** Where the model of a call stands. */
type ModelSource =
  | { readonly from: 'path'; readonly value: string }
  /** A top-level field `model` of a JSON body, or a form field of that name: the Content-Type tells. */
  | { readonly from: 'body' }
  | { readonly from: 'none' };

/** The request of a call to its upstream. */
export interface Operation {
  /** Word that groups match by: `chat`, `messages`, `embeddings` … */
  readonly name: string;
  /** The dialect in which an error of ours must be spoken. */
  readonly shape: Dialect;
  /** Whether the call takes a slot. */
  readonly limited: boolean;
  /** It does because a group names its path, in all readings of it. Absent: it is named in some at the most. */
  readonly isNamed?: true;
  readonly model: ModelSource;
  /** The method that it counts as, if the request names another method. Absent: its own. */
  readonly countsAs?: string;
  /** Use of the WebSocket that the call comes as. Absent: it comes as none. */
  readonly socket?: SocketUse;
}

/**
 * Uses of a WebSocket. `session`: it holds its slot from the upgrade to the close. `turns`: each message that asks
 * for a response is a call of its own, and the connection takes no slot. `unserved`: nothing is served over one here.
 */
type SocketUse = 'session' | 'turns' | 'unserved';

/** Azure's older API names a deployment in the path and has OpenAI's routes behind it. */
const AZURE_DEPLOYMENT = /(?:^|\/openai)\/deployments\/(?<model>[^/]+)(?<rest>\/.+)$/i;

/** Others do so too, which read no model in the body then: what it says there is not what the upstream serves. */
const NAMED_BEFORE: readonly RegExp[] = [
  AZURE_DEPLOYMENT,
  // LiteLLM, as OpenAI did once.
  /\/engines\/(?<model>[^/]+(?:\/[^/]+)??)(?<rest>\/(?:(?:chat\/)?completions|embeddings))$/i,
  // Databricks.
  /\/serving-endpoints\/(?<model>[^/]+)(?<rest>\/invocations)$/i,
  // Hugging Face.
  /\/hf-inference\/models\/(?<model>[^/]+(?:\/[^/]+)??)(?<rest>\/v1\/.+)$/i,
  // Vertex, but for the endpoint that stands for all its models.
  /\/(?<model>endpoints\/(?!openapi\/)[^/]+)(?<rest>\/chat\/completions)$/i,
];

/** Segments that tell the shape of a path which no row knows, where an upstream has several. */
const SHAPE_HINTS: readonly (readonly [RegExp, Dialect])[] = [
  [/\/anthropic\//, 'anthropic'],
  [/\/(?:openai|compatible-mode|compatibility)\//, 'openai'],
];

const NO_MODEL: ModelSource = { from: 'none' };

/** An operation that no row knows. */
export const UNKNOWN_NAME = 'other';

export const ADMINISTRATION_NAME = 'administration';

/**
 * Tells what a call is by its method and its path behind the upstream's base URL. Only calls that
 * generate take a slot: what is not known passes, because a slot held for a poll or an upload would
 * starve generation. Of an opaque upstream nothing is known, so there every call with a body takes one.
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
  const asItStands = operationAt(method, plain, dialect);
  // How the likeliest server reads it: a decorated name of a model must not make it another one.
  const { isDeployment, ...operation } =
    readingsOf(plain)
      .map((reading) => operationAt(method, reading, dialect))
      .find(({ limited }) => limited) ?? asItStands;
  const isAzure = isDeployment || query.has('api-version');
  return isAzure && operation.shape === 'openai' ? { ...operation, shape: 'azure' } : operation;
}

/**
 * The models, and the places of models, that servers may read in the path of a call that takes a slot. If there are several, the
 * call counts as one of them, and the upstream may serve another.
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

/** Segments that precede a model. If a path has two, servers may route by either. */
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
 * otherwise. Null: no reading of the path names one.
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
 * Names of what must be open for a call that goes out with the operator's key: the name of every operation that takes
 * no slot and that some server may take its path for. Administration and what nobody knows are never open.
 */
export function neededRoutes(method: string, path: string, dialect: Dialect): readonly string[] {
  const plain = plainPath(path);
  const needed = [plain, ...readingsOf(plain)].map((each) => neededFor(method, each, dialect));
  return [...new Set(needed.filter((name) => name !== null))];
}

/**
 * Routes that administer an account, wherever they are mounted and whatever else they end like, and routes that choose the
 * organization that pays (GitHub's `/orgs/{org}/inference/…`).
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
  // With another method it is a route that no row describes.
  return row.access === 'open' ? UNKNOWN_NAME : row.name;
}

function hasBody(method: string): boolean {
  return method === 'POST' || method === 'PUT' || method === 'PATCH';
}

/** Some clients encode the colon before Gemini's verb. */
function plainPath(path: string): string {
  return withoutTrailingSlashes(path.replace(/%3a/gi, ':'));
}

/** The operation that one reading of a path asks for. */
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

/** A path that names a model in front of the route, taken apart; null: it does not. */
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

/** A route of the operations table inside a path. */
export interface RouteInPath {
  readonly name: string;
  /** Null: that of its upstream. */
  readonly shape: Dialect | null;
  /** Whether a POST generates there. */
  readonly limited: boolean;
  /** Where it begins and ends in the path, without a slash behind it. */
  readonly start: number;
  readonly end: number;
}

/** Finds the route in a path as it stands. Null: no row knows one, or the upstream is opaque. */
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

/** Whether the segment before Gemini's verb is a version or a location. The model is in the body then. */
function isOfRoute(segment: string, match: RegExpExecArray, path: string): boolean {
  if (!match[0].startsWith(`/${segment}:`)) return false;
  return VERSION.test(segment) || /\/locations$/i.test(path.slice(0, match.index));
}

/** A regular expression would take quadratic time over a path of slashes. */
export function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

function shapeOf(path: string, dialect: Dialect): Dialect {
  return SHAPE_HINTS.find(([segment]) => segment.test(path))?.[1] ?? dialect;
}

/** Malformed escapes stay as they came: the upstream will say what it thinks of them. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
