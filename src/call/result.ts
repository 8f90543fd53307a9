import type { AnswerHeaders } from '../contract/answer-headers.ts';
import type { ErrorReply } from '../contract/reasons.ts';
import type { RateRoom } from '../core/parts/rates.ts';
import type { Waited } from './acquire/waited.ts';

export interface BodyRead {
  /** `hidden` if the body may name a model that was not found, on which nothing depends. */
  readonly found: 'found' | 'absent' | 'hidden';
  readonly model: string | null;
  readonly isStream: boolean;
}

/** The same, with what was searched for. */
export interface EarlierRead extends BodyRead {
  readonly soughtStream: boolean;
  readonly soughtProof: boolean;
}

/** The upstream's answer is in transit to the caller. */
export interface Answered {
  readonly kind: 'answered';
  readonly response: Response;
  /** Headers that Headgate adds. */
  readonly said: AnswerHeaders;
  /**
   * Whether its status may concern the caller's key. It does not if the upstream serves no calls from here, whatever
   * the key.
   */
  readonly isAboutKey: boolean;
}

/** The caller receives an error of Headgate. */
export interface Rejected {
  readonly kind: 'rejected';
  readonly reply: ErrorReply;
  /**
   * What was found in the body, from which a newer configuration may determine the upstream. null if that is not
   * enough.
   */
  readonly read: EarlierRead | null;
  /** Remaining rate limits to report to the caller. Absent if there are none. */
  readonly rates?: readonly RateRoom[];
  /** The wait that ended with this rejection. Absent or null if the call did not wait. */
  readonly waited?: Waited | null;
  /** Present if a newer configuration than at the start of the call made this decision. */
  readonly isByNewer?: true;
  /** Present if a newer configuration does not accept the key of the caller. */
  readonly isOfKey?: true;
}

/** The upstream did not serve the call, whose body is kept. All its slots are released. */
export interface NotServed {
  readonly kind: 'again';
  /**
   * `here` returns the call to the queue. `here later` does so after a pause, because the upstream failed. `elsewhere`
   * is another upstream, if there is one. `other place` is an upstream with another address or egress, because calls
   * from here are not served at this one.
   */
  readonly where: 'here' | 'here later' | 'elsewhere' | 'other place';
  /** Present if the call was cut because the first byte of its answer took too long. */
  readonly isSlow?: true;
}

/** The call has to be routed again, by this version of the configuration or a newer one. */
export interface Moved {
  readonly kind: 'moved';
  readonly configVersion: number;
}

export interface CallerLeft {
  readonly kind: 'left';
}

export type AttemptResult<End = Answered> = End | Rejected | NotServed | Moved | CallerLeft;

export type FinalResult<End = Answered> = End | Rejected | CallerLeft;

export const LEFT_STATUS = 499;

export const LEFT: CallerLeft = { kind: 'left' };

export function answered(
  response: Response,
  said: AnswerHeaders = {},
  isAboutKey = true,
): Answered {
  return { kind: 'answered', response, said, isAboutKey };
}

export function rejected(reply: ErrorReply, read: EarlierRead | null = null): Rejected {
  return { kind: 'rejected', reply, read };
}

/** Makes the compiler reject a `switch` that misses a result. */
export function never(result: never): never {
  throw new Error(`no such result: ${JSON.stringify(result)}`);
}
