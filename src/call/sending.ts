import type { Admission } from './acquire/admission.ts';
import type { Metering } from './metering.ts';
import type { Candidate } from './plan.ts';
import type { Target } from './target.ts';
import type { Turn } from './tries.ts';

/** A call that has its slots, and everything that it needs to be sent. */
export interface Sending {
  readonly candidate: Candidate;
  readonly turn: Turn;
  readonly target: Target;
  readonly metering: Metering | null;
  readonly admission: Admission;
}
