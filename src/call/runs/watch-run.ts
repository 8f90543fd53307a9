import type { Admission } from '../acquire/admission.ts';
import type { Candidate } from '../plan.ts';
import { endRun, mayEndRun } from './end-run.ts';
import { noterOf } from '../made/note-made.ts';
import { lookForMade } from './look-for-made.ts';
import { holdRun, mayStartRun, type CheckedAnswer } from './hold-run.ts';

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
