import { runsOf } from '../../env.ts';
import { pause } from '../../runtime/background.ts';
import { logEvent } from '../../runtime/log.ts';
import { within } from '../../runtime/within.ts';
import { mayAskForRun, runSaid, startsRun } from '../../upstream/operation/runs.ts';
import { RunEvents } from '../../upstream/operation/run-events.ts';
import { peekAnswer } from '../../upstream/refusal/refused-answer.ts';
import type { Admission } from '../acquire/admission.ts';
import type { Candidate } from '../plan.ts';
import { methodOf } from '../socket/upgrade.ts';
import { isRunStream } from './run-stream.ts';

/** How much of an answer is looked at: what it says of a run stands near its beginning. */
export const RUN_BYTES_MAX = 262_144;

/** How long the object of the runs may take to one try, and the pauses before each. */
const HOLD_LOST_MS = 6_000;
const PAUSES_MS = [0, 250, 1_000, 3_000];

/** Tells whether the answer to a call may be that a run has begun, with its body as far as it is there. */
export function mayStartRun({ call, located, rules }: Candidate): boolean {
  const { request, body } = call;
  if (methodOf(request, located.operation) !== 'POST' || rules.hold.maxRunMs === 0) return false;
  const starts = startsRun(located.path);
  if (starts !== 'if asked') return starts === 'always';
  const isPacked = (request.headers.get('content-encoding') ?? 'identity') !== 'identity';
  return isPacked || mayAskForRun(body.bytes);
}

/** An answer that was looked at, and whether its run holds the leases of the call by now. */
export interface Looked {
  readonly answer: Response;
  readonly isHeld: boolean;
  /** Reads what a stream says of a run as it passes. Absent: it is none that is read. */
  readonly events?: RunEvents;
  /** The stream is that of the call's own run, which holds the leases where the stream ends sooner. */
  readonly isOwn?: boolean;
}

/**
 * Looks whether an answer says that a run has begun, and hands the leases of its call over to that, before its caller hears
 * of it: so nobody can say that it has ended before it is held.
 */
export async function holdRun(
  candidate: Candidate,
  admission: Admission,
  answer: Response,
): Promise<Looked> {
  if (isRunStream(answer)) return { answer, isHeld: false, events: new RunEvents(), isOwn: true };
  if (!answer.ok || !isJson(answer)) return { answer, isHeld: false };
  const peeked = await peekAnswer(answer, RUN_BYTES_MAX);
  const run = runSaid(peeked.text);
  const looked = { answer: peeked.answer, isHeld: false };
  if (run?.state !== 'goes on') return looked;
  return { ...looked, isHeld: await keepForRun(candidate, admission, run.id, answer.status) };
}

/** Hands the leases of a call over to its run. False: they are still the call's. */
export async function keepForRun(
  { call, located, rules }: Candidate,
  admission: Admission,
  run: string,
  status: number,
): Promise<boolean> {
  const { maxRunMs, maxHoldMs } = rules.hold;
  const forMs = Math.min(maxRunMs, maxHoldMs);
  for (const pauseMs of PAUSES_MS) {
    if (pauseMs > 0) await pause(pauseMs, call.after);
    // Objects may be reset meanwhile: what they are told of the leases is said anew.
    const said = await tryToHold({ call, located }, admission, { run, forMs, status });
    if (said !== 'late') return said === 'held';
  }
  logEvent('run_not_held', { upstream: located.upstream.id, run });
  return false;
}

async function tryToHold(
  { call, located }: Pick<Candidate, 'call' | 'located'>,
  admission: Admission,
  { run, forMs, status }: { readonly run: string; readonly forMs: number; readonly status: number },
): Promise<'held' | 'late' | 'no'> {
  const leases = await admission.forRun(status);
  if (leases === null) return 'no';
  const { jurisdiction = null } = leases.find((one) => one.jurisdiction !== null) ?? {};
  const runs = runsOf(call.env, located.upstream.id, jurisdiction);
  if (runs === null) return 'no';
  try {
    return await within(HOLD_LOST_MS, runs.hold({ run, forMs, leases }), call.after);
  } catch {
    return 'late';
  }
}

export function isJson({ headers }: Response): boolean {
  return /[/+]json\b/i.test(headers.get('content-type') ?? '');
}
