import type { GroupConfig } from '../contract/config/config.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { callsUnderWay } from './limit-windows.ts';
import { TRACED_MODEL_MAX } from './observe/trace.ts';
import type { Candidate } from './plan.ts';
import type { Sending } from './sending.ts';

/** The limits that a call counts in. */
export interface CallLimits {
  /** Names the pool, the upstream and the model, for what is learned of their limits. */
  readonly place: string;
  /** Other calls that were sent and have no answer yet: the limits may not count them. */
  readonly underWay: number;
  readonly feedForward: GroupConfig['feed_forward'];
}

/** The call that an answer is for, as far as reading the answer depends on it. */
export interface AnswerSource {
  readonly upstream: Upstream;
  /** The call went to a group's member, with the key of that or none, for which its caller is not to blame. */
  readonly isOfMember: boolean;
  readonly limits: () => CallLimits;
}

/** Describes a call that was sent. */
export function sourceOf({
  candidate,
  admission,
}: Pick<Sending, 'candidate' | 'admission'>): AnswerSource {
  const { upstream } = candidate.located;
  const isOfMember = candidate.member !== null;
  return { upstream, isOfMember, limits: () => limitsOf({ candidate, admission }) };
}

/** Finds the limits that a call counts in. */
export function limitsOf({
  candidate,
  admission,
}: Pick<Sending, 'candidate' | 'admission'>): CallLimits {
  const { located, rules } = candidate;
  const { upstream, model } = located;
  const [pool] = admission.placements;
  const words = [pool?.group, pool?.partition, upstream.id, model?.slice(0, TRACED_MODEL_MAX)];
  return {
    place: words.join(' '),
    underWay: callsUnderWay(limitedAt(candidate)),
    feedForward: rules.feedForward,
  };
}

/** Names the upstream and the key whose limits count a call. */
export function limitedAt({ located, routed }: Candidate): string {
  return `${located.upstream.id} ${routed.keyFingerprint ?? ''}`;
}
