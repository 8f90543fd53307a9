import type { Dialect } from '../../contract/http.ts';
import type { Sockets } from '../../contract/config/upstream.ts';
import { PROMPT, referenceIn } from '../body/model-scan.ts';
import { classify, modelsInPath, referenceInPath, type Operation } from './operation.ts';
import { SESSION_NAME } from './operations-table.ts';
import { readingsOf, parametersIn } from './readings.ts';

/**
 * Paths of sessions, matched by their end like operations. OpenAI, Azure and compatible servers name the model or the
 * deployment in the query, and Gemini and Vertex in the first message.
 */
const NAMED_IN_QUERY = /\/(?:realtime|live)(?:\/translations)?$/i;
const NAMED_IN_MESSAGE: readonly RegExp[] = [
  /\/ws\/[^/]+\.GenerativeService\.BidiGenerateContent(?:Constrained)?$/i,
  /\/ws\/[^/]+\.LlmBidiService\/BidiGenerateContent$/i,
];

const RESPONSES = /\/responses$/i;

/** Query parameters that name the model of a session, without separators (OpenAI and Azure). */
const MODEL_PARAMETERS: ReadonlySet<string> = new Set([
  'model',
  'modelid',
  'modelname',
  'deployment',
  'deploymentid',
  'deploymentname',
]);

const NO_MODEL: Operation['model'] = { from: 'none' };

/** Determines what a WebSocket upgrade is from its path relative to the upstream's base URL. */
export function classifyUpgrade(
  path: string,
  query: URLSearchParams,
  { dialect, sockets }: { readonly dialect: Dialect; readonly sockets: Sockets },
): Operation {
  if (isResponses(path) && sockets !== 'any') {
    return { ...classifyTurn(path, query, { dialect, sockets }), limited: false, model: NO_MODEL };
  }
  const { shape } = classify('GET', path, query, dialect);
  const isServed = sockets === 'any' || (sockets !== 'none' && isReadSession(path));
  if (!isServed) {
    return { name: SESSION_NAME, shape, limited: false, model: NO_MODEL, socket: 'unserved' };
  }
  const [named] = modelsInUrl(path, query);
  const model = named === undefined ? NO_MODEL : ({ from: 'path', value: named } as const);
  return { name: SESSION_NAME, shape, limited: true, model, socket: 'session' };
}

/** Determines what each turn on a connection is: the POST of the same path, if the upstream serves turns there. */
export function classifyTurn(
  path: string,
  query: URLSearchParams,
  { dialect, sockets }: { readonly dialect: Dialect; readonly sockets: Sockets },
): Operation {
  const socket = isResponses(path) && sockets === 'turns' ? 'turns' : 'unserved';
  return { ...classify('POST', path, query, dialect), socket };
}

/** All models that the URL of a session names. Servers differ in how they read names. */
export function modelsInUrl(path: string, query: URLSearchParams): readonly string[] {
  return [...new Set([...modelsInQuery(query), ...modelsInPath(path)])];
}

export function modelsInQuery(query: URLSearchParams): readonly string[] {
  const named = parametersIn(query).filter(
    ({ name, value }) => value !== '' && isModelParameter(name),
  );
  return [...new Set(named.map(({ value }) => value))];
}

function isModelParameter(name: string): boolean {
  const words = name.replace(/[[\0].*$/s, '').replace(/[\s_.-]/g, '');
  return MODEL_PARAMETERS.has(words.toLowerCase());
}

/**
 * Finds a parameter or stored object in a session's URL that refers to a model. Returns null if there is none. A model
 * in the URL overrides the path.
 */
export function referenceInUrl(path: string, query: URLSearchParams): string | null {
  const inQuery = referenceInQuery(query);
  if (inQuery !== null) return inQuery;
  return modelsInUrl(path, query).length > 0 ? null : referenceInPath(path);
}

/** Finds a parameter that refers to a model without naming it. Returns null if there is none. */
export function referenceInQuery(query: URLSearchParams): string | null {
  const names = parametersIn(query).flatMap(({ name }) => (isModelParameter(name) ? [] : [name]));
  return names.find((name) => name !== PROMPT && referenceIn(name) !== null) ?? null;
}

/** Whether a path is that of the Responses API, which agents try over WebSocket first. */
export function isResponses(path: string): boolean {
  return RESPONSES.test(plain(path));
}

/** Whether the first message of a session names its model, so that it is only known after the upgrade. */
export function isNamedInMessage(path: string): boolean {
  return NAMED_IN_MESSAGE.some((pattern) => pattern.test(plain(path)));
}

/** Whether Headgate can read the model in the messages of a session. The messages of other routes are unknown. */
export function isReadSession(path: string): boolean {
  return NAMED_IN_QUERY.test(plain(path)) || isNamedInMessage(path);
}

/** Whether every reading of a path is such a route. */
export function isSessionRoute(path: string): boolean {
  return [path, ...readingsOf(path)].every(isReadSession);
}

/** A regular expression would take quadratic time on a path of slashes. */
function plain(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}
