/** Effect that another configuration would have on one pool at this moment. Nothing of it is done. */
export interface PoolPreview {
  /** Slots that could be granted now, and then, with what was learned; null: any number. */
  readonly slots: { readonly from: number | null; readonly to: number | null };
  readonly in_use: number;
  readonly queued: number;
  /** Waiters that would be granted at once, and those that would be refused. */
  readonly granted: number;
  readonly refused: number;
  /** Whether its budget would have no room for a call, and has room now. Absent: of a release that cannot tell. */
  readonly spends_budget?: boolean;
  /** Members that there are, or would be. Absent: of a release before members. */
  readonly members?: readonly MemberPreview[];
}

/** Effect on one member. No slots: it is not there, switched off or out. */
export interface MemberPreview {
  readonly member: string;
  readonly slots: PoolPreview['slots'];
  readonly in_use: number;
}
