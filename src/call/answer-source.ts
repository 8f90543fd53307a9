import type { GroupConfig } from '../contract/config/config.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { callsUnderWay } from './limit-windows.ts';
import { TRACED_MODEL_MAX } from './observe/trace.ts';
import type { Candidate } from './plan.ts';
import type { Sending } from './sending.ts';

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
