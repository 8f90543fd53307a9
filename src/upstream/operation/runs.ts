import { readingsOf } from './path-readings.ts';

/**
 * Runs go on at an upstream after the answer to the call that started them, and are asked for by their ids: background
 * responses and interactions, runs of assistants' threads, videos, Bedrock's asynchronous invocations, Gemini's operations.
 */

/** Paths whose calls may start a run. Requests can be spelled in too many ways to decide by them, so the answer decides. */
const STARTS =
  /\/(?:responses|threads\/(?:[^/]+\/)?runs|threads\/[^/]+\/runs\/[^/]+\/submit_tool_outputs|interactions|videos(?:\/(?:edits|extensions|[^/]+\/remix))?|video\/generations(?:\/jobs)?|async-invoke)$|:predictLongRunning$/i;

/** Paths by which a run is asked for, or cancelled. Vertex is told in the body which one; an ARN has a slash, escaped or not. */
const ASKS =
  /\/(?:responses|interactions|videos|video\/generations(?:\/jobs)?|async-invoke|operations|threads\/[^/]+\/runs)\/[^/]+(?:\/cancel)?$|\/async-invoke\/arn:[^/]+\/[^/]+$|:fetchPredictOperation$/i;

/** Paths whose POST cancels a run. */
const CANCELS = /\/(?:responses|interactions|threads\/[^/]+\/runs)\/[^/]+\/cancel$/i;

/**
 * Statuses of runs that continue, in lower case and without separators. Any other status ends the hold: a run that waits for its
 * caller generates nothing.
 */
const GOES_ON: ReadonlySet<string> = new Set([
  'queued',
  'pending',
  'submitted',
  'starting',
  'preprocessing',
  'processing',
  'running',
  'inprogress',
  'cancelling',
  'canceling',
]);

/** Maximum length of the id of a run. */
const ID_MAX = 500;

/** Whether a call of a path may start a run at some server. The answer decides. */
export function mayStartRunAt(path: string): boolean {
  return [path, ...readingsOf(path)].some((each) => STARTS.test(withoutSlash(each)));
}

/** Whether a path asks for a run, whatever a server takes it for: what else is stored there may say anything of one. */
export function asksForRun(path: string): boolean {
  return [path, ...readingsOf(path)].every((each) => ASKS.test(withoutSlash(each)));
}

/** Whether a path cancels a run, whatever a server takes it for. */
export function cancelsRun(path: string): boolean {
  return [path, ...readingsOf(path)].every((each) => CANCELS.test(withoutSlash(each)));
}

function withoutSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path;
}

/** A run as an answer tells of it. */
export interface ReportedRun {
  readonly id: string;
  readonly state: 'goes on' | 'ended' | 'cancelled';
}

/** Reads what a value says of a run; null: it is about none. */
export function runIn(value: unknown): ReportedRun | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const said = value as Readonly<Record<string, unknown>>;
  const id = [said['id'], said['invocationArn'], said['name']].find(isId);
  // What was answered in the foreground has no run.
  if (id === undefined || said['background'] === false) return null;
  const state = stateOf(said);
  return state === null ? null : { id, state };
}

function stateOf(said: Readonly<Record<string, unknown>>): ReportedRun['state'] | null {
  const { status, done, deleted, invocationArn, name } = said;
  if (deleted === true) return 'cancelled';
  if (typeof status === 'string') {
    if (GOES_ON.has(status.toLowerCase().replace(/[\s_-]/g, ''))) return 'goes on';
    return /^cancel/i.test(status) ? 'cancelled' : 'ended';
  }
  // Gemini says only that an operation is over, and Bedrock answers the start with the name alone.
  if (done === true) return 'ended';
  const isOperation = typeof name === 'string' && name.includes('operations/');
  return isOperation || typeof invocationArn === 'string' ? 'goes on' : null;
}

export function isId(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= ID_MAX;
}
