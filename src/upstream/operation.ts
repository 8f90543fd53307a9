import type { Dialect } from '../contract/dialect.ts';
import { OPERATIONS } from './operations-table.ts';

/** Where the model of a call stands. */
type ModelPlace =
  | { readonly from: 'path'; readonly value: string }
  /** A top-level field `model` of a JSON body, or a form field of that name: the Content-Type tells. */
  | { readonly from: 'body' }
  | { readonly from: 'none' };

/** What a call asks of its upstream. */
export interface Operation {
  /** Word that groups match by: `chat`, `messages`, `embeddings` … */
  readonly name: string;
  /** The dialect in which an error of ours must be spoken. */
  readonly shape: Dialect;
  /** Whether the call takes a slot. */
  readonly limited: boolean;
  readonly model: ModelPlace;
}

/** Azure's older API names a deployment in the path and has OpenAI's routes behind it. */
const AZURE_DEPLOYMENT = /(?:^|\/openai)\/deployments\/(?<model>[^/]+)(?<rest>\/.+)$/i;

/** Segments that tell the shape of a path which no row knows, where an upstream has several. */
const SHAPE_HINTS: readonly (readonly [RegExp, Dialect])[] = [
  [/\/anthropic\//, 'anthropic'],
  [/\/(?:openai|compatible-mode|compatibility)\//, 'openai'],
];

const NO_MODEL: ModelPlace = { from: 'none' };

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
    const limited = method === 'POST' || method === 'PUT' || method === 'PATCH';
    return { name: 'opaque', shape: 'opaque', limited, model: NO_MODEL };
  }
  // Some clients encode the colon before Gemini's verb.
  const plain = withoutTrailingSlashes(path.replace(/%3a/gi, ':'));
  const deployment = AZURE_DEPLOYMENT.exec(plain)?.groups;
  const operation = lookUpDecoded(method, deployment?.['rest'] ?? plain, dialect);
  const isAzure = deployment !== undefined || query.has('api-version');
  return {
    ...operation,
    shape: isAzure && operation.shape === 'openai' ? 'azure' : operation.shape,
    model:
      deployment?.['model'] !== undefined && operation.limited
        ? { from: 'path', value: decode(deployment['model']) }
        : operation.model,
  };
}

/**
 * Upstreams decode paths before they route, and some go up where an escaped slash stands behind two dots: no
 * escape in a path may dodge the slot.
 */
function lookUpDecoded(method: string, path: string, dialect: Dialect): Operation {
  const operation = lookUp(method, path, dialect);
  if (operation.limited || !path.includes('%')) return operation;
  const decoded = decodeAscii(path);
  const { pathname } = new URL(`http://upstream${decoded}`);
  // How far it goes up depends on what a server takes for a segment: empty ones, ones with a backslash.
  const behindDots = decoded.replace(/^.*[/\\]\.\.(?=[/\\])/s, '');
  return (
    [pathname, behindDots]
      .map((each) => lookUp(method, withoutTrailingSlashes(each), dialect))
      .find(({ limited }) => limited) ?? operation
  );
}

/**
 * Routes are ASCII. Whatever else is escaped, well or badly, stays as it came, and so do question marks and
 * hashes: an escaped one does not end a path.
 */
function decodeAscii(path: string): string {
  return path.replace(/%(?!23|3f)([0-7][0-9a-f])/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

function lookUp(method: string, path: string, dialect: Dialect): Operation {
  for (const row of OPERATIONS) {
    if (row.only !== undefined && row.only !== dialect) continue;
    const match = row.path.exec(path);
    if (match === null) continue;
    const shape = row.shape ?? shapeOf(path, dialect);
    if (!row.limited || method !== 'POST') {
      return { name: row.name, shape, limited: false, model: NO_MODEL };
    }
    const value = match.groups?.['model'];
    const model: ModelPlace =
      value === undefined ? { from: 'body' } : { from: 'path', value: decode(value) };
    return { name: row.name, shape, limited: true, model };
  }
  return { name: 'other', shape: shapeOf(path, dialect), limited: false, model: NO_MODEL };
}

/** A regular expression would take quadratic time over a path of slashes. */
function withoutTrailingSlashes(path: string): string {
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
