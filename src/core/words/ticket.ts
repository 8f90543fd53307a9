import type { InstantMs, LeaseId, MemberId, TicketId } from './ids.ts';
import type { CallEstimate } from './usage.ts';

/** Priority classes, best first. */
export const LANES = ['high', 'normal', 'low'] as const;

export type Lane = (typeof LANES)[number];

/**
 * The kind of a holder other than a call: a WebSocket session, a turn on a connection, a lease requested over HTTP, or
 * a run that continues at its upstream.
 */
export const HOLD_KINDS = ['session', 'turn', 'lease', 'run'] as const;

export type HoldKind = (typeof HOLD_KINDS)[number];

/** The caller and the call that hold a slot. Acquire calls, renewals and stored leases contain it as it is. */
export interface Holder {
  /** The tenant that is charged. Tenants share the group fairly. */
  readonly tenant: string;
  /** The agent run of the tenant. null if the call belongs to none. */
  readonly agent: string | null;
  /**
   * Hash of the user or session of a call without an agent. It affects only the scheduling order between calls of the
   * tenant: no cap, budget or member. Absent if unknown.
   */
  readonly session?: string;
  /** The caller. Only calls of the same caller may share their parent's slots. */
  readonly caller: string;
  /** Reported only. The core does not read it. */
  readonly upstream: string;
  readonly model: string | null;
  /** Absent for a call. */
  readonly kind?: HoldKind;
  /** Service tier in the body, in lower case. Absent if it is the default or unknown. */
  readonly tier?: string;
  /** Fingerprint of the caller's own provider key in a pool that other keys share. Absent if it is the pool's key. */
  readonly credential?: string;
  /** The body may contain a model and a tier and was not read. Absent if `model` and `tier` are final. */
  readonly isUnread?: boolean;
}

/** One logical call that asks for slots. */
export interface Ticket {
  readonly id: TicketId;
  readonly holder: Holder;
  readonly lane: Lane;
  readonly slots: number;
  /**
   * The instant at which the call reached Headgate. All acquire calls of the ticket carry the same value, also after a
   * reset.
   */
  readonly enqueuedAt: InstantMs;
  /** The start of its agent run, as reported by the caller. null if the run is known only by its id, or not at all. */
  readonly agentStartedAt: InstantMs | null;
  /** The caller's own deadline. The group's timeout applies too. */
  readonly deadlineAt: InstantMs | null;
  /** Maximum wait that the operator set for its lane or key. Absent if the group's timeout applies. */
  readonly timeoutMs?: number;
  /**
   * The Worker can find the session of the call and has not looked for it yet. Absent if `session` of the holder is
   * final.
   */
  readonly mayNameSession?: boolean;
  /** false if the caller prefers a `busy` rejection to a wait. */
  readonly wait: boolean;
  /** Set if the call asks several groups together. It is granted now, or declined without a trace. */
  readonly isTry: boolean;
  /** The call also needs slots of other groups, and may hold these while it waits for them. */
  readonly waitsElsewhere: boolean;
  /** Names of other pools that the call still needs slots of. Absent if there are none. */
  readonly needs?: readonly string[];
  /**
   * The call was granted here before and returned its slot while it waited for another group. It goes first. Absent if
   * not.
   */
  readonly hadTurn?: boolean;
  /** Leases of the call that makes this one and waits for it. They may belong to other groups. */
  readonly parents: readonly LeaseId[];
  /** Its expected use. null means one request without a token estimate. */
  readonly estimate: CallEstimate | null;
  /** The isolate of its Worker, which may start calls on prefetched slots. Absent if it may not. */
  readonly isolate?: string;
  /** Its lease is held by id, so the disposal of an answer does not free it. Absent if disposal frees it. */
  readonly isById?: boolean;
  /** Members that refused the call or that it cannot use. Absent if there are none. */
  readonly excluded?: readonly MemberId[];
  /**
   * The excluded members whose refusal is temporary. The call may return there once they have served other calls.
   * Absent if there are none.
   */
  readonly excludedForNow?: readonly MemberId[];
}
