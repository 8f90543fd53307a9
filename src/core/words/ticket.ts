import type { InstantMs, LeaseId, MemberId, TicketId } from './ids.ts';
import type { CallEstimate } from './usage.ts';

/** Priority classes, best first. */
export const LANES = ['high', 'normal', 'low'] as const;

export type Lane = (typeof LANES)[number];

/**
 * The kind of a holder that is no call: a WebSocket session, a turn on a connection, a lease that its caller asked for, or a
 * run that goes on at its upstream.
 */
export const HOLD_KINDS = ['session', 'turn', 'lease', 'run'] as const;

export type HoldKind = (typeof HOLD_KINDS)[number];

/** The holder of a slot. */
export interface Holder {
  /** The tenant that is charged: shares of the group are fair between tenants. */
  readonly tenant: string;
  /** The agent run of the tenant, or null: the call belongs to none. */
  readonly agent: string | null;
  /**
   * Hash of the user or session of a call without an agent. Only the scheduling order between calls of the tenant depends on
   * it: no cap, budget or member does. Absent: none is known.
   */
  readonly session?: string;
  /** The caller: only calls of the same one pass on each other's slots. */
  readonly caller: string;
  /** Carried along and never looked into. */
  readonly upstream: string;
  readonly model: string | null;
  /** The isolate of the Worker that its call is in. Absent: not known. */
  readonly isolate?: string;
  /** Absent: a call. */
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
  /** Slots that it takes. */
  readonly slots: number;
  /** The instant at which the call reached Headgate. Kept over every acquire call and every reset. */
  readonly enqueuedAt: InstantMs;
  /** The begin of its agent run, as the caller says; null: known by its id only, or not at all. */
  readonly agentStartedAt: InstantMs | null;
  /** The caller's own deadline; the group's time-out applies besides. */
  readonly deadlineAt: InstantMs | null;
  /** How long it may wait by the operator, who says it for its lane or its key. Absent: as long as the group says. */
  readonly timeoutMs?: number;
  /** The Worker can find the session of the call, and has not looked for it. Absent: `session` of the holder is final. */
  readonly mayNameSession?: boolean;
  /** False: the caller would rather be told `busy` than wait. */
  readonly wait: boolean;
  /** A try for several groups at once: granted now, or declined without a trace. */
  readonly isTry: boolean;
  /** The call needs slots of other groups too, and may hold these while it waits for them. */
  readonly waitsElsewhere: boolean;
  /** Other pools that the call needs slots of and has none of yet, by their names. Absent: none. */
  readonly needs?: readonly string[];
  /** Its turn came here before, and it gave its slot back while it waited for another group: it goes first. Absent: no. */
  readonly hadTurn?: boolean;
  /** Leases of the call that this one is made for, which waits for it. They may be of other groups. */
  readonly parents: readonly LeaseId[];
  /** Its probable use. Null: one request, and nobody counts tokens. */
  readonly estimate: CallEstimate | null;
  /** Its isolate may start calls on slots that it is lent. Absent: it may not. */
  readonly mayBorrow?: boolean;
  /** Its lease is held by its id: the disposal of an answer does not free it. Absent: it does. */
  readonly isById?: boolean;
  /** Members that refused it, or that it cannot go to. Absent: none. */
  readonly excluded?: readonly MemberId[];
  /** Those of them that refused it for what passes: it may go there again once they have served others. Absent: none. */
  readonly excludedForNow?: readonly MemberId[];
}
