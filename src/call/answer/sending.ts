import type { GroupConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import type { UpstreamRefusal } from '../../upstream/refusal/classify-refusal.ts';
import type { CutReason } from '../../core/words/outcome.ts';
import type { Admission } from '../acquire/admission.ts';
import type { Metering } from '../plan/metering.ts';
import { autoPlacementOf, type Candidate } from '../plan/plan.ts';
import type { CallTarget } from '../plan/target.ts';
import type { CandidateAttempt } from '../attempts/call-attempts.ts';
import { TRACED_MODEL_MAX } from '../observe/trace.ts';
import { CallNamesReader } from '../plan/call-names.ts';
import { knownAccountOf, noteRevoked, noteTaken } from '../identity/authenticate.ts';
import { callsUnderWay } from './limit-windows.ts';

/**
 * A call in progress at its upstream, and the facts that its answer reports: limits, refusals, and the account of the
 * key.
 */

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

export interface CallLimits {
  /** Key of the pool, upstream, credential and model, under which lessons about their limits are stored. */
  readonly place: string;
  /** Other calls in flight without an answer. The limits in the headers may not include them. */
  readonly underWay: number;
  readonly feedForward: GroupConfig['feed_forward'];
}

export interface AnswerSource {
  readonly upstream: Upstream;
  /** The call went to a member of a group, so the caller is not responsible for its key. */
  readonly isOfMember: boolean;
  readonly limits: () => CallLimits;
}

export function sourceOf({
  candidate,
  admission,
}: Pick<Sending, 'candidate' | 'admission'>): AnswerSource {
  const { upstream } = candidate.located;
  const isOfMember = candidate.member !== null;
  return { upstream, isOfMember, limits: () => limitsOf({ candidate, admission }) };
}

export function limitsOf({
  candidate,
  admission,
}: Pick<Sending, 'candidate' | 'admission'>): CallLimits {
  const { located, rules } = candidate;
  const [pool] = admission.placements;
  const at = limitedAt(candidate);
  const words = [pool?.group, pool?.partition, at, located.model?.slice(0, TRACED_MODEL_MAX)];
  return {
    place: words.join(' '),
    underWay: callsUnderWay(at),
    feedForward: rules.feedForward,
  };
}

/** Key of the upstream, member and credential whose limits count a call. */
export function limitedAt({ located, routed, member }: Candidate): string {
  return `${located.upstream.id} ${member?.id ?? ''} ${routed.keyFingerprint ?? ''}`;
}

/** The fields of a refusal in the log, with the model if it was read. `status` is null if there was no answer. */
export function refusalFields(
  { candidate, admission }: Sending,
  { signal: { kind, retryAfterMs } }: UpstreamRefusal,
  status: number | null,
): Readonly<Record<string, string | number | null>> {
  const { located, member } = candidate;
  const model = new CallNamesReader(candidate).model?.slice(0, TRACED_MODEL_MAX) ?? null;
  return {
    upstream: located.upstream.id,
    model,
    groups: groupsOf(admission),
    ...(member !== null && { member: member.id }),
    status,
    kind,
    retry_after_ms: retryAfterMs,
    // Names from OpenTelemetry's GenAI conventions, so that logs can be joined with traces.
    'gen_ai.provider.name': located.upstream.id,
    'gen_ai.request.model': model,
    'error.type': kind,
  };
}

export function groupsOf({ placements }: Admission): string {
  return placements.map(({ group }) => group).join(', ');
}

/**
 * Learns the account of a call's key from the upstream's answer. An upstream knows a key if it serves its calls or
 * rate-limits them. Returns whether the account was found just now.
 */
export async function learnAccount(candidate: Candidate, answer: Response): Promise<boolean> {
  const { call, located, key, routed } = candidate;
  const { upstream } = located;
  if (answer.status === 401) noteRevoked(call, upstream, key);
  if (!answer.ok && answer.status !== 429) return false;
  return (await noteTaken(call, upstream, key, routed.account, answer)) !== null;
}

/** Moves the slot of a call to the pool of its account, which counts the call from now on. */
export function moveToAccount(
  { call, located, key, routed }: Candidate,
  admission: Admission,
): void {
  const name = knownAccountOf(located.upstream, key);
  if (name === null || routed.account?.kind !== 'unproved') return;
  const account = { kind: 'known', name, isProved: true } as const;
  const placement = autoPlacementOf(call, { ...routed, account });
  if (placement !== null) admission.moveToAccount(placement, name);
}

/** Returns whether the account of the key was found after the call was placed. */
export function hasAccountByNow({ located, key, routed }: Candidate): boolean {
  return routed.account?.kind === 'unproved' && knownAccountOf(located.upstream, key) !== null;
}

export function reportCut(admission: Admission, status: number, reason: CutReason | null): void {
  if (reason !== null && reason !== 'left') admission.reportAnswer(status, { cut: reason });
}
