import type { RoutingTable } from '../../config/snapshots.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import { runsOf, type Env } from '../../env.ts';
import { pause, type Schedule } from '../../runtime/async.ts';
import {
  RunDocument,
  RunEvents,
  asksForRun,
  type RunReader,
  type ReportedRun,
} from '../../upstream/operation/runs.ts';
import { peekAnswer } from '../../upstream/transfer/fetch-answer.ts';
import type { Admission } from '../acquire/admission.ts';
import type { Candidate } from '../plan/plan.ts';
import type { AuthenticatedCall } from '../request/call.ts';
import type { Located } from '../request/locate.ts';
import {
  noterOf,
  holdRun,
  mayStartRun,
  isJson,
  readBeginning,
  RUN_BYTES_MAX,
  isRunStream,
  readerOf,
  readThrough,
  type CheckedAnswer,
  type NoteMade,
} from './hold-run.ts';

/** Ends runs, and selects what to search an answer for. */

export type RunWatch = (
  admission: Admission,
  answer: Response,
  isTakenWhole: boolean,
) => Promise<CheckedAnswer>;

/** How the answer to a call with slots is searched for a run. null if it is not. */
export function watchRun(candidate: Candidate): RunWatch | null {
  const { call, located } = candidate;
  const note = noterOf(call, located);
  if (mayStartRun(candidate)) {
    return (admission, answer, isTakenWhole) =>
      holdRun(candidate, admission, answer, isTakenWhole, note);
  }
  if (note !== null) {
    return async (_, answer) => {
      return { answer: await lookForMade(call, answer, note), isHeld: false };
    };
  }
  // A group may name the path by which a run is polled.
  if (!mayEndRun(call, located)) return null;
  return (_, answer) => endRun(call, located, answer);
}

export function mayEndRun({ method, env }: AuthenticatedCall, { path }: Located): boolean {
  return env.RUNS !== undefined && method !== 'HEAD' && asksForRun(path);
}

/**
 * Checks whether an answer reports that a run has ended, and then frees the run's slots. Returns the same answer,
 * unread.
 */
async function endRun(
  call: AuthenticatedCall,
  located: Located,
  answer: Response,
): Promise<CheckedAnswer> {
  const reading = (at: Response, reader: RunReader): CheckedAnswer => {
    const events = readerOf(at, reader, located);
    return { answer: at, isHeld: false, ...(events !== null && { events }) };
  };
  if (isRunStream(answer)) return reading(answer, endReader(RunEvents, call, located));
  if (!answer.ok || !isJson(answer)) return { answer, isHeld: false };
  const peeked = await peekAnswer(answer, RUN_BYTES_MAX, call.after);
  const { reportedRun, isWhole } = readBeginning(peeked.text);
  const looked = { answer: peeked.answer, isHeld: false };
  if (reportedRun !== null) reportIfEnded(call, located, reportedRun);
  // Its status may follow a long beginning.
  const isOpen = reportedRun === null && !isWhole;
  return isOpen ? reading(peeked.answer, endReader(RunDocument, call, located)) : looked;
}

/** The same for a call that takes no slot, whose answer is not read otherwise. */
export async function endRunOf(
  call: AuthenticatedCall,
  located: Located,
  received: Response,
): Promise<Response> {
  const { answer, events } = await endRun(call, located, received);
  return events === undefined ? answer : readThrough(answer, events, call.ctx);
}

function endReader(
  Reader: typeof RunEvents | typeof RunDocument,
  call: AuthenticatedCall,
  located: Located,
): RunReader {
  let isReported = false;
  return new Reader((run) => {
    if (!isReported) isReported = reportIfEnded(call, located, run);
  });
}

/** Reports the end of a run. Returns false if the run continues. */
function reportIfEnded(
  { env, ctx, table, after }: AuthenticatedCall,
  { upstream }: Located,
  run: ReportedRun,
): boolean {
  if (run.state === 'goes on') return false;
  const outcome = run.state === 'cancelled' ? 'cancelled' : 'success';
  ctx.waitUntil(reportEnd(env, table, upstream.id, { id: run.id, outcome }, after));
  return true;
}

/**
 * Pauses before each attempt of the report. There are several, because most callers stop polling a run once it has
 * ended.
 */
const PAUSES_MS = [0, 500, 2_000, 5_000];

interface End {
  readonly id: string;
  readonly outcome: LeaseOutcome;
}

/** Reports the end of a run to every object that may hold its leases. Returns false if one could not be reached. */
export async function reportEnd(
  env: Env,
  { snapshot }: RoutingTable,
  upstream: string,
  end: End,
  after?: Schedule,
): Promise<boolean> {
  const places = new Set([null, ...snapshot.config.groups.map((group) => group.jurisdiction)]);
  const reported = await Promise.all(
    [...places].map((place) => reportAt(env, upstream, place, end, after)),
  );
  return !reported.includes(false);
}

async function reportAt(
  env: Env,
  upstream: string,
  place: string | null,
  { id, outcome }: End,
  after?: Schedule,
): Promise<boolean> {
  for (const pauseMs of PAUSES_MS) {
    if (pauseMs > 0) await pause(pauseMs, after);
    try {
      // A new stub each time, because a stub is unusable after a reset.
      await runsOf(env, upstream, place)?.end(id, outcome);
      return true;
    } catch {
      // Retried below. After the last attempt the run's time limit ends it.
    }
  }
  return false;
}

/**
 * Checks whether an answer names a stored object, and records it before the caller receives the answer. Returns the
 * same answer, unread.
 */
export async function lookForMade(
  { after }: AuthenticatedCall,
  answer: Response,
  note: NoteMade,
): Promise<Response> {
  if (!answer.ok || !isJson(answer)) return answer;
  const peeked = await peekAnswer(answer, RUN_BYTES_MAX, after);
  const { made } = readBeginning(peeked.text);
  if (made !== null) await note(made);
  return peeked.answer;
}
