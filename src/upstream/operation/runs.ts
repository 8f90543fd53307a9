import { readingsOf } from './path-readings.ts';

/**
 * Runs continue at an upstream after the response to the call that started them, and are requested by their ids. They
 * are background responses and interactions, runs of assistants' threads, videos, Bedrock's asynchronous invocations,
 * and Gemini's operations.
 */

/**
 * Paths whose calls may start a run. The parameters that request one have too many spellings, so the response decides.
 */
const STARTS =
  /\/(?:responses|threads\/(?:[^/]+\/)?runs|threads\/[^/]+\/runs\/[^/]+\/submit_tool_outputs|interactions|videos(?:\/(?:edits|extensions|[^/]+\/remix))?|video\/generations(?:\/jobs)?|async-invoke)$|:predictLongRunning$/i;

/** Paths that request or cancel a run. Vertex names the run in the body. An ARN has a slash, escaped or not. */
const ASKS =
  /\/(?:responses|interactions|videos|video\/generations(?:\/jobs)?|async-invoke|operations|threads\/[^/]+\/runs)\/[^/]+(?:\/cancel)?$|\/async-invoke\/arn:[^/]+\/[^/]+$|:fetchPredictOperation$/i;

/** Paths whose POST cancels a run. */
const CANCELS = /\/(?:responses|interactions|threads\/[^/]+\/runs)\/[^/]+\/cancel$/i;

/**
 * Statuses of runs that continue, in lower case and without separators. Any other status ends the hold, because a run
 * that waits for its caller generates nothing.
 */
const CONTINUING: ReadonlySet<string> = new Set([
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

const ID_MAX = 500;

/** Whether a call of a path may start a run on some server. The response decides. */
export function mayStartRunAt(path: string): boolean {
  return [path, ...readingsOf(path)].some((each) => STARTS.test(withoutSlash(each)));
}

/** Whether every reading of a path requests a run. Other stored objects may contain any statement about a run. */
export function asksForRun(path: string): boolean {
  return [path, ...readingsOf(path)].every((each) => ASKS.test(withoutSlash(each)));
}

/** Whether every reading of a path cancels a run. */
export function cancelsRun(path: string): boolean {
  return [path, ...readingsOf(path)].every((each) => CANCELS.test(withoutSlash(each)));
}

function withoutSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path;
}

export interface ReportedRun {
  readonly id: string;
  readonly state: 'goes on' | 'ended' | 'cancelled';
}

/** Reads the state of a run from a value. Returns null if it contains none. */
export function runIn(value: unknown): ReportedRun | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const fields = value as Readonly<Record<string, unknown>>;
  const id = [fields['id'], fields['invocationArn'], fields['name']].find(isId);
  // A foreground response has no run.
  if (id === undefined || fields['background'] === false) return null;
  const state = stateOf(fields);
  return state === null ? null : { id, state };
}

function stateOf(fields: Readonly<Record<string, unknown>>): ReportedRun['state'] | null {
  const { status, done, deleted, invocationArn, name } = fields;
  if (deleted === true) return 'cancelled';
  if (typeof status === 'string') {
    if (CONTINUING.has(status.toLowerCase().replace(/[\s_-]/g, ''))) return 'goes on';
    return /^cancel/i.test(status) ? 'cancelled' : 'ended';
  }
  // Gemini only reports that an operation has ended, and Bedrock responds to the start with just the name.
  if (done === true) return 'ended';
  const isOperation = typeof name === 'string' && name.includes('operations/');
  return isOperation || typeof invocationArn === 'string' ? 'goes on' : null;
}

export function isId(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= ID_MAX;
}
