import type { Histogram } from '../../core/parts/histogram.ts';
import type { Invariant, ReportEnd } from '../../core/parts/totals.ts';
import type { CutReason } from '../../core/words/cut.ts';
import type { HoldKind } from '../../core/words/ticket.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import type { ScopeKind } from '../scope.ts';
import type { PoolStatus } from '../status.ts';
import type { WarningKind } from '../warnings.ts';

/** Everything that is counted in a pool since its instance began. */
export interface PoolMetrics {
  readonly status: PoolStatus;
  readonly waits: Readonly<Histogram>;
  readonly holds: Readonly<Histogram>;
  readonly granted_again_total: number;
  readonly left_total: number;
  readonly moved_total: number;
  /** By outcome. Those that expired are counted in the status. */
  readonly ended_total: Readonly<Partial<Record<LeaseOutcome, number>>>;
  /** By why. Absent: from the release before. */
  readonly cut_total?: Readonly<Partial<Record<CutReason, number>>>;
  /** Reports of lease holders, by outcome. Absent: from the previous release. */
  readonly reports_total?: Readonly<Partial<Record<ReportEnd, number>>>;
  readonly input_tokens_total: number;
  readonly output_tokens_total: number;
  readonly cost_usd_total: number;
  /** Invariants that were broken, each of which is told. Absent: from the release before. */
  readonly violations_total?: Readonly<Record<Invariant, number>>;
  /** Slots in use, by the kind of their holders. Absent: calls hold them all. */
  readonly slots_by_kind?: Readonly<Partial<Record<HoldKind, number>>>;
  /** Queued calls that a scope holds, by kind of scope. Absent if there are none. */
  readonly queued_by_scope?: Readonly<Partial<Record<ScopeKind, number>>>;
  readonly warnings_total: Readonly<Partial<Record<WarningKind, number>>>;
}
