import type { AnalyticsDataset, Env } from '../../env.ts';
import type { ResumeRequest } from '../../contract/rpc/group-rpc.ts';
import type { Reason } from '../../contract/reasons.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import type { RefusalKind } from '../../core/words/signal.ts';
import type { Settlement } from '../../core/words/usage.ts';

/**
 * Maximum length of a text: callers write some of them, and a point may have 16 KB of them together.
 */
const TEXT_LENGTH_MAX = 200;

/** The subject of a point: a call in one of its groups. */
export type AnalysedCall = Pick<
  ResumeRequest,
  'group' | 'upstream' | 'model' | 'tenant' | 'caller' | 'lane' | 'member'
>;

/** The end of a call in a group. */
export interface CallEnd {
  readonly outcome: LeaseOutcome | 'rejected';
  /** Why the group or the upstream refused it; null: nobody did. */
  readonly reason: Reason | RefusalKind | null;
  /** The upstream's; null: there was no answer. */
  readonly status: number | null;
  readonly waitedMs: number;
  readonly heldMs: number;
  /** Null: nobody counted. */
  readonly used: Pick<Settlement, 'inputTokens' | 'outputTokens' | 'usd'> | null;
}

/**
 * Writes one data point about a call that has ended, where a dataset is bound. Its fields are a contract:
 * `docs/metrics.md` has them, and new ones come last. Fire and forget: nothing waits for it, and nothing
 * fails with it.
 */
export function noteEnd({ ANALYTICS: dataset }: Env, call: AnalysedCall, end: CallEnd): void {
  // Given back unused: the call goes on elsewhere, or asks once more.
  if (dataset === undefined || end.outcome === 'unused') return;
  try {
    dataset.writeDataPoint(pointOf(call, end));
  } catch {
    // A point that is lost is not worth a call.
  }
}

/** Writes the same of a call that a group rejected. */
export function noteRejection(
  env: Env,
  call: AnalysedCall,
  reason: Reason,
  waitedMs: number,
): void {
  const nothing = { status: null, heldMs: 0, used: null };
  noteEnd(env, call, { outcome: 'rejected', reason, waitedMs, ...nothing });
}

function pointOf(
  call: AnalysedCall,
  { outcome, reason, status, waitedMs, heldMs, used }: CallEnd,
): Parameters<AnalyticsDataset['writeDataPoint']>[0] {
  const texts = [
    call.group,
    call.upstream,
    call.model ?? '',
    call.tenant ?? call.caller,
    call.lane ?? 'normal',
    outcome,
    reason ?? '',
    status === null ? '' : `${Math.floor(status / 100)}xx`,
    call.member ?? '',
  ];
  return {
    indexes: [call.group],
    blobs: texts.map((text) => text.slice(0, TEXT_LENGTH_MAX)),
    doubles: [waitedMs, heldMs, used?.inputTokens ?? 0, used?.outputTokens ?? 0, used?.usd ?? 0],
  };
}
