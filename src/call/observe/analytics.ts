import type { AnalyticsDataset, Env } from '../../env.ts';
import type { Reason } from '../../contract/reasons.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import type { RefusalKind } from '../../core/words/signal.ts';
import type { Holder, Lane, Settlement } from '../../core/words/ticket.ts';

/** Maximum length of a text. Callers choose some of them, and all texts of a point may have 16 KB. */
const TEXT_LENGTH_MAX = 200;

export interface AnalysedCall {
  readonly group: string;
  readonly holder: Pick<Holder, 'upstream' | 'model' | 'tenant'>;
  readonly lane: Lane;
  /** Absent if it was not granted at a member. */
  readonly member?: string;
}

export interface CallEnd {
  readonly outcome: LeaseOutcome | 'rejected';
  /** Why the group or the upstream refused it. null if neither did. */
  readonly reason: Reason | RefusalKind | null;
  /** The upstream's status. null if there was no answer. */
  readonly status: number | null;
  readonly waitedMs: number;
  readonly heldMs: number;
  /** null if usage was not counted. */
  readonly used: Pick<Settlement, 'inputTokens' | 'outputTokens' | 'usd'> | null;
}

/**
 * Writes one data point about an ended call, if a dataset is bound. Its fields are a contract: `docs/metrics.md` lists
 * them, and new ones are added at the end. Nothing waits for it or fails with it.
 */
export function noteEnd({ ANALYTICS: dataset }: Env, call: AnalysedCall, end: CallEnd): void {
  // An unused slot: the call continues elsewhere, or asks again.
  if (dataset === undefined || end.outcome === 'unused') return;
  try {
    dataset.writeDataPoint(pointOf(call, end));
  } catch {
    // A lost point must not fail a call.
  }
}

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
  { group, holder, lane, member = '' }: AnalysedCall,
  { outcome, reason, status, waitedMs, heldMs, used }: CallEnd,
): Parameters<AnalyticsDataset['writeDataPoint']>[0] {
  const texts = [
    group,
    holder.upstream,
    holder.model ?? '',
    holder.tenant,
    lane,
    outcome,
    reason ?? '',
    status === null ? '' : `${Math.floor(status / 100)}xx`,
    member,
  ];
  return {
    indexes: [group],
    blobs: texts.map((text) => text.slice(0, TEXT_LENGTH_MAX)),
    doubles: [waitedMs, heldMs, used?.inputTokens ?? 0, used?.outputTokens ?? 0, used?.usd ?? 0],
  };
}
