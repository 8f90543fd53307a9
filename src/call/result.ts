import type { AnswerHeaders } from '../contract/answer-headers.ts';
import type { ErrorReply } from '../contract/reasons.ts';
import type { RateRoom } from '../core/parts/rate-room.ts';
import type { Waited } from './acquire/waited.ts';

/** The finds in the body of a call. */
export interface BodyRead {
  /** `hidden`: it may have a model that was not found, which nothing goes by. */
  readonly found: 'found' | 'absent' | 'hidden';
  readonly model: string | null;
  readonly isStream: boolean;
}

/** The same, with what was looked for. */
export interface EarlierRead extends BodyRead {
  readonly soughtStream: boolean;
  readonly soughtProof: boolean;
}

/** The upstream's answer is on its way to the caller. */
export interface Answered {
  readonly kind: 'answered';
  readonly response: Response;
  /** Headers that Headgate puts on it. */
  readonly said: AnswerHeaders;
  /** Whether its status may say something of the caller's key: not where nobody is served, whatever the key. */
  readonly isAboutKey: boolean;
}

/** The caller is told an error of ours. */
export interface Rejected {
  readonly kind: 'rejected';
  readonly reply: ErrorReply;
  /** Finds of the body, by which a newer configuration may know the upstream; null: none that would do. */
  readonly read: EarlierRead | null;
  /** Room in the limits of requests and tokens that the caller is told of. Absent: none. */
  readonly rates?: readonly RateRoom[];
  /** The wait that ended so. Absent or null: it did not wait. */
  readonly waited?: Waited | null;
  /** A newer configuration than that of the call's beginning has decided so. Absent: no. */
  readonly isByNewer?: true;
}

/** The upstream did not serve the call, whose body is kept. All its slots are given back. */
export interface NotServed {
  readonly kind: 'again';
  /**
   * `here`: it takes its place in the queue once more, after a moment if the upstream failed. `elsewhere`:
   * at another upstream, if there is one. `other place`: at one that is reached another way, as nothing that goes
   * out to the same address will be served.
   */
  readonly where: 'here' | 'here later' | 'elsewhere' | 'other place';
  /** It was cut, as the first byte of its answer took too long. Absent: it was not. */
  readonly isSlow?: true;
}

/** The call is to be routed anew, no earlier than by that version of the configuration. */
export interface Moved {
  readonly kind: 'moved';
  readonly configVersion: number;
}

/** The caller has gone. */
export interface CallerLeft {
  readonly kind: 'left';
}

/** The end of a try at one upstream. */
export type AttemptResult = Answered | Rejected | NotServed | Moved | CallerLeft;

/** The end of a call. */
export type FinalResult = Answered | Rejected | CallerLeft;

/** The status of an answer that nobody is left to read. */
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

/** Marks what no result can be: the compiler refuses a `switch` that forgets one. */
export function never(result: never): never {
  throw new Error(`no such result: ${JSON.stringify(result)}`);
}
