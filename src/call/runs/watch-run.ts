import type { Admission } from '../acquire/admission.ts';
import type { Candidate } from '../plan.ts';
import { endRun, mayEndRun } from './end-run.ts';
import { holdRun, mayStartRun, type Looked } from './hold-run.ts';

/** Looks what an answer says of a run. */
export type RunWatch = (
  admission: Admission,
  answer: Response,
  isTakenWhole: boolean,
) => Promise<Looked>;

/** Tells how the answer to a call that holds slots is looked at for a run; null: not at all. */
export function watchRun(candidate: Candidate): RunWatch | null {
  if (mayStartRun(candidate)) {
    return (admission, answer, isTakenWhole) => holdRun(candidate, admission, answer, isTakenWhole);
  }
  // A group may name the path by which a run is asked for.
  const { call, located } = candidate;
  if (!mayEndRun(call, located)) return null;
  return (_, answer) => endRun(call, located, answer);
}
