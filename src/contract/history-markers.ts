/** What of itself a pool marks in its history. What operators change stands in the audit log. */
export type PoolMarkerKind =
  | 'upstream_pause'
  | 'breaker_opened'
  | 'breaker_closed'
  | 'ceiling_cut'
  | 'reset';

/** Something that changed how a pool grants, at an instant. */
export interface PoolMarker {
  /** Epoch milliseconds; of several the first. */
  readonly at: number;
  readonly kind: PoolMarkerKind;
  /** How often within a minute: one marker stands for all of them. */
  readonly times: number;
  /** What the upstream's answer was about, as in `requests`; null: no answer of it. */
  readonly why: string | null;
  /** `until`, in epoch milliseconds; `from` and `to`, in slots; `leases`: how many were held. */
  readonly figures: Readonly<Record<string, number>>;
}

/** So many of a pool are kept, for as long as the points of its history. */
export const POOL_MARKERS_MAX = 500;
