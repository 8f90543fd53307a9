/** Effect that another configuration would have on one pool now. The preview changes nothing. */
export interface PoolPreview {
  /** Slots that could be granted now and after the change, including what was learned. null means unlimited. */
  readonly slots: { readonly from: number | null; readonly to: number | null };
  readonly in_use: number;
  readonly queued: number;
  /** Waiters that would be granted immediately, and those that would be rejected. */
  readonly granted: number;
  readonly refused: number;
  /** Whether the change would leave its budget without room for a call. */
  readonly spends_budget: boolean;
  /** Members before or after the change. Empty if the group has none. */
  readonly members: readonly MemberPreview[];
}

/** Effect on one member. 0 slots if it does not exist, is disabled or is ejected. */
export interface MemberPreview {
  readonly member: string;
  readonly slots: PoolPreview['slots'];
  readonly in_use: number;
}
