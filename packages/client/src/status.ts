/** The calls that match every value that is not null. */
export interface CallScope {
  readonly model: string | null;
  readonly service_tier: string | null;
  /** Fingerprint of your own provider key. */
  readonly credential: string | null;
}

/** A group as a caller sees it: with its own work, and nobody else's. */
export interface CallerGroupStatus {
  readonly name: string;
  readonly kind: 'configured' | 'automatic' | 'key' | 'team';
  readonly partition: string | null;
  readonly limits: {
    /** Slots that can be granted over all who share the group. Null: any number. */
    readonly slots: number | null;
    readonly slots_each: number | null;
    readonly slots_each_agent: number | null;
  };
  readonly paused: boolean;
  readonly paused_until: string | null;
  readonly pause_message?: string;
  /** The calls to which `paused_until` and a learned `limits.slots` apply. Absent if they apply to all calls. */
  readonly about?: CallScope;
  /** Other calls that the upstream stops while all others start. Absent if there are none. */
  readonly scopes?: readonly {
    readonly about: CallScope;
    readonly paused_until: string | null;
    readonly pause_message?: string;
  }[];
  readonly draining: boolean;
  readonly in_flight: number;
  readonly slots_in_use: number;
  /** Leases and calls that wait, the next one first. */
  readonly waiting: readonly {
    readonly ticket: string;
    readonly position: number;
    /** null if nothing is known of it: no call has ended for long, or an operator ends the wait. */
    readonly estimate_ms: number | null;
    /** Why it waits now, as `slots`. Absent from a Headgate of an older release. */
    readonly waits_for?: string;
    /** Other groups that it needs slots of. Absent: none. */
    readonly needs?: readonly string[];
    readonly waited_ms: number;
    readonly lane: 'high' | 'normal' | 'low';
    readonly agent: string | null;
    readonly slots: number;
  }[];
}

/** Headgate's `GET /status`, word for word; it may tell more than is written here. */
export interface Status {
  readonly at: string;
  readonly key: { readonly id: string; readonly kind: 'gateway' | 'provider' };
  readonly may_use: readonly string[];
  readonly groups: readonly CallerGroupStatus[];
  readonly unreachable: readonly string[];
}
