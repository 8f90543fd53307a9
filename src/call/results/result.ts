import type { Settlement } from '../../core/words/ticket.ts';
import type { Placement } from '../../routing/placement.ts';
import type { AnswerHeaders } from '../../contract/http.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import type { RateRoom } from '../../core/parts/rates.ts';
import type { WaitReason } from '../../core/parts/decision-log.ts';
import type { CutReason } from '../../core/words/outcome.ts';
import type { HoldLimits } from '../../upstream/transfer/watched-pipe.ts';

/** The results of a step, an attempt and a call, and the rejections that several steps use. */

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
  readonly ownHeaders: AnswerHeaders;
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

export type Settle = (placement: Placement) => Settlement;

export const LEFT_STATUS = 499;

export const LEFT: CallerLeft = { kind: 'left' };

export function answered(
  response: Response,
  ownHeaders: AnswerHeaders = {},
  isAboutKey = true,
): Answered {
  return { kind: 'answered', response, ownHeaders, isAboutKey };
}

export function rejected(reply: ErrorReply, read: EarlierRead | null = null): Rejected {
  return { kind: 'rejected', reply, read };
}

/** Makes the compiler reject a `switch` that misses a result. */
export function never(result: never): never {
  throw new Error(`no such result: ${JSON.stringify(result)}`);
}

export interface Waited {
  readonly group: string;
  readonly reason: WaitReason;
  readonly ms: number;
}

/** The longer of two waits. null if there was none. */
export function longerWait(a: Waited | null, b: Waited | null): Waited | null {
  if (a === null || b === null) return a ?? b;
  return b.ms > a.ms ? b : a;
}

/** The header with the wait reason and its group: `slots; group=openai`. */
export function waitedHeader(
  waited: Pick<Waited, 'group' | 'reason'> | null,
): Pick<AnswerHeaders, 'headgate-waited-for'> {
  if (waited === null) return {};
  return { 'headgate-waited-for': `${waited.reason.cause}; group=${waited.group}` };
}

/**
 * The rejection of a call whose upstream refuses the network address of this deployment, if no other upstream is left.
 */
export function closed(upstreamId: string): Rejected {
  const message = `Upstream \`${upstreamId}\` refuses calls from the network address of this deployment, and no other upstream served this one. Ask the operator for an upstream that accepts them.`;
  return rejected({ reason: 'upstream_unreachable', message });
}

/** The rejection of a call whose caller stopped sending its body, or sends it too slowly. */
export function uploadTooSlow({ stalledMs, uploadMinBytesPerS }: HoldLimits): Rejected {
  const message =
    `The request body did not arrive in time: it fell ${stalledMs ?? 0} ms behind a rate of ${uploadMinBytesPerS} bytes/s. ` +
    'Retry over a faster connection, or ask the operator to change `holds.stalled_ms` or ' +
    '`holds.upload_min_bytes_per_s` of the group.';
  return rejected({ reason: 'request_timeout', message });
}

/** The rejection of a call that its upstream did not answer. `cutBy` is null if the connection failed. */
export function unreachable(upstreamId: string, cutBy: CutReason | null): Rejected {
  const why: Record<CutReason, string> = {
    left: 'the caller disconnected',
    body: 'the remaining body may not be sent',
    revoked: 'the operator ended the call',
    idle: 'it sent nothing in time',
    slow: 'its first byte did not arrive in time',
    stalled: 'the caller did not read the response in time',
    request_timeout: 'the caller sent its body too slowly',
    max_hold: 'the call took longer than its group allows',
    slow_reader: 'one side did not read what the other side sent',
    overfull: 'too much was queued behind it',
    draining: 'its group is being drained',
    other_model: 'it names a different model than the one it was counted under',
    message_unreadable: 'one of its messages could not be read',
    message_refused: 'one of its messages was rejected',
    key_invalid: 'its key is no longer valid',
    key_forbidden: 'its key may no longer use its group or upstream',
    group_changed: 'it no longer belongs to a group whose slot it holds',
    upstream_closed: 'the upstream was disabled or removed',
    restart: 'Headgate is shutting down',
  };
  const because = cutBy === null ? 'the connection failed' : why[cutBy];
  const message = `Upstream \`${upstreamId}\` returned no response: ${because}.`;
  return rejected({ reason: 'upstream_unreachable', message });
}

/** Minimum delay of a retry. Up to as much is added at random, so that callers do not all return at once. */
const RETRY_AFTER_MS = 2_000;

/** The rejection of a call if there is no memory for its body in the queue. */
export function tooManyBytes(): Rejected {
  const message =
    'The bodies of queued calls use all the memory that is reserved for them, and this call would have to queue too. Try again in a moment. A body that names its model first can be queued almost unread.';
  const retryAfterMs = RETRY_AFTER_MS * (1 + Math.random());
  return rejected({ reason: 'too_many_bytes_waiting', message, retryAfterMs });
}
