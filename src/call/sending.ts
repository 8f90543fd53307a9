import type { Admission } from './acquire/admission.ts';
import type { Metering } from './metering.ts';
import type { Candidate } from './plan.ts';
import type { CallTarget } from './target.ts';
import type { CandidateAttempt } from './attempts/call-attempts.ts';

/**
 * The metering of a call during and after it. A call with a reservation also requests usage, and is settled if it
 * fails.
 */
type AnswerMetering = Pick<Metering, 'meterFor' | 'pipeFor' | 'settlement' | 'withoutPacking'> &
  Partial<Pick<Metering, 'asking' | 'notServed'>>;

export interface Sending {
  readonly candidate: Candidate;
  readonly turn: CandidateAttempt;
  readonly target: CallTarget;
  readonly metering: AnswerMetering | null;
  readonly admission: Admission;
}
