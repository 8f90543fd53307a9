import type { Histogram } from '../../core/parts/histogram.ts';
import type { Invariant, ReportEnd } from '../../core/parts/totals.ts';
import type { CutReason } from '../../core/words/cut.ts';
import type { HoldKind } from '../../core/words/ticket.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import type { ScopeKind } from '../scope.ts';
import type { PoolStatus } from '../status.ts';
import type { WarningKind } from '../warnings.ts';

/** All counts of a pool since its instance started. */
export interface PoolMetrics {
  readonly status: PoolStatus;
  readonly waits: Readonly<Histogram>;
  readonly holds: Readonly<Histogram>;
  readonly granted_again_total: number;
  readonly left_total: number;
  readonly moved_total: number;
  /** By outcome. Expired leases are counted in the status. */
  readonly ended_total: Readonly<Partial<Record<LeaseOutcome, number>>>;
  /** By reason. */
  readonly cut_total: Readonly<Partial<Record<CutReason, number>>>;
  /** Reports of lease holders, by outcome. */
  readonly reports_total: Readonly<Partial<Record<ReportEnd, number>>>;
  readonly input_tokens_total: number;
  readonly output_tokens_total: number;
  readonly cost_usd_total: number;
  /** Violated invariants. Each violation is also reported. Empty if the pool was never used. */
  readonly violations_total: Readonly<Partial<Record<Invariant, number>>>;
  /** Slots in use, by the kind of their holders. Absent if calls hold all of them. */
  readonly slots_by_kind?: Readonly<Partial<Record<HoldKind, number>>>;
  /** Queued calls that a scope holds, by kind of scope. Absent if there are none. */
  readonly queued_by_scope?: Readonly<Partial<Record<ScopeKind, number>>>;
  readonly warnings_total: Readonly<Partial<Record<WarningKind, number>>>;
}
