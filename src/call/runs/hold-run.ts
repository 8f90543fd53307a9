import { mediaType } from '../../runtime/header-value.ts';
import { runsOf } from '../../env.ts';
import { pause } from '../../runtime/background.ts';
import { logEvent } from '../../runtime/log.ts';
import { within } from '../../runtime/within.ts';
import { mayStartRunAt } from '../../upstream/operation/runs.ts';
import { isPlain } from '../../upstream/body/packing.ts';
import { RunDocument, RunEvents, type RunReader } from '../../upstream/operation/run-events.ts';
import { peekAnswer } from '../../upstream/refusal/refused-answer.ts';
import type { Admission } from '../acquire/admission.ts';
import type { Located } from '../locate.ts';
import { noting, type NoteMade } from '../made/note-made.ts';
import type { Candidate } from '../plan.ts';
import { isRunStream, readerOf } from './run-stream.ts';

/** How much of an answer is looked at: what it says of a run stands near its beginning. */
export const RUN_BYTES_MAX = 262_144;

/** How long the object of the runs may take to one try, and the pauses before each. */
const HOLD_LOST_MS = 6_000;
const PAUSES_MS = [0, 250, 1_000, 3_000];

/** Whether the answer to a call may start a run. */
export function mayStartRun({ call, located, rules }: Candidate): boolean {
  if (call.method === 'HEAD' || rules.hold.maxRunMs === 0) return false;
  return mayStartRunAt(located.path);
}

/** An answer that was looked at, and whether its run holds the leases of the call by now. */
export interface CheckedAnswer {
  readonly answer: Response;
  readonly isHeld: boolean;
  /** Reads the run's state from the answer as it passes. Absent: the answer is not read. */
  readonly events?: RunReader;
  /** The answer belongs to the call's own run, which holds the leases if the answer ends before the run. */
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
  isTakenWhole: boolean,
  note: NoteMade | null,
): Promise<CheckedAnswer> {
  if (isRunStream(answer)) return reading(answer, noting(new RunEvents(), note), candidate.located);
  if (!answer.ok || !mayBeJson(answer)) return { answer, isHeld: false };
  if (isTakenWhole && isPlain(answer.headers.get('content-encoding'))) {
    return { answer, isHeld: false, events: noting(new RunDocument(), note), isOwn: true };
  }
  const peeked = await peekAnswer(answer, RUN_BYTES_MAX, candidate.call.after);
  const { said, isWhole, made } = readBeginning(peeked.text);
  const looked = { answer: peeked.answer, isHeld: false };
  const noted = made === null ? undefined : note?.(made);
  if (said?.state === 'goes on') {
    await noted;
    return { ...looked, isHeld: await keepForRun(candidate, admission, said.id, answer.status) };
  }
  // It was too long or too slow to be read first.
  const isOpen = said === null && !isWhole;
  const open = (): CheckedAnswer =>
    reading(peeked.answer, noting(new RunDocument(), note), candidate.located);
  return isOpen ? open() : looked;
}

/** Has the answer to the call's own run read as it passes, if it can be. */
function reading(answer: Response, reader: RunReader, located: Located): CheckedAnswer {
  const events = readerOf(answer, reader, located);
  return events === null
    ? { answer, isHeld: false }
    : { answer, isHeld: false, events, isOwn: true };
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

const encoder = new TextEncoder();

/** Reads the run's state from the beginning of an answer. */
export function readBeginning(text: string): RunDocument {
  const document = new RunDocument();
  document.push(encoder.encode(text));
  return document;
}

/** Whether an answer may be JSON: some servers do not declare it. A stream of events is not. */
function mayBeJson({ headers }: Response): boolean {
  const type = mediaType(headers.get('content-type'));
  return type !== 'text/event-stream' && !/^(?:audio|image|video)\//.test(type);
}

export function isJson({ headers }: Response): boolean {
  return /[/+]json$/.test(mediaType(headers.get('content-type')));
}
