/** Calls that match all values that are not null. */
export interface CallScope {
  readonly model: string | null;
  readonly service_tier: string | null;
  /** Fingerprint of your own provider key. */
  readonly credential: string | null;
}

/** A group with the work of this key only. Times are ISO 8601 timestamps, durations are in milliseconds. */
export interface CallerGroupStatus {
  readonly name: string;
  readonly kind: 'configured' | 'automatic' | 'key' | 'team';
  readonly partition: string | null;
  readonly limits: {
    /** Slots that all keys of the group share. null means unlimited. */
    readonly slots: number | null;
    readonly slots_each: number | null;
    readonly slots_each_agent: number | null;
  };
  readonly paused: boolean;
  readonly paused_until: string | null;
  readonly pause_message?: string;
  /** Calls to which `paused_until` and a learned `limits.slots` apply. Absent if they apply to all calls. */
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
  /** Queued leases and calls, next first. */
  readonly waiting: readonly {
    readonly ticket: string;
    readonly position: number;
    /**
     * Estimated remaining wait. null if unknown: no call has ended for a long time, or an operator must end the wait.
     */
    readonly estimate_ms: number | null;
    /** Current wait reason, such as `slots`. */
    readonly waits_for: string;
    /** Other groups whose slots it also needs. Absent if there are none. */
    readonly needs?: readonly string[];
    readonly waited_ms: number;
    readonly lane: 'high' | 'normal' | 'low';
    readonly agent: string | null;
    readonly slots: number;
  }[];
}

/** The response of Headgate's `GET /status`. It may contain additional fields. */
export interface Status {
  readonly at: string;
  readonly key: { readonly id: string; readonly kind: 'gateway' | 'provider' };
  readonly may_use: readonly string[];
  readonly groups: readonly CallerGroupStatus[];
  readonly unreachable: readonly string[];
}
