import type { InstantMs, LeaseId, MemberId, TicketId } from './ids.ts';

/**
 * A call that asks for a slot: its ticket, its expected use, the use that its upstream has counted, and its lease as
 * its holder knows it.
 */

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

/** The expected use of a call, before its upstream has counted it. */
export interface CallEstimate {
  /** Estimated input by a rule of thumb. The group corrects it by what it learned about the model. */
  readonly inputTokens: number;
  /** The body was not read, so `inputTokens` is estimated from its length. Absent if it was read. */
  readonly isInputGuess?: boolean;
  /** Minimum input of a body that was read. Absent if `inputTokens` is exact. */
  readonly leastInputTokens?: number;
  /** Maximum number of output tokens that the call allows. null if it sets none. */
  readonly maxOutputTokens: number | null;
  /** Output tokens to reserve, as the provider counts them: the maximum, the mean of the model, or none. */
  readonly reserve: 'max_tokens' | 'mean' | 'none';
  /** USD per token. null if unknown, which counts as no cost. */
  readonly price: TokenPrices | null;
  /** Prices at members, by member id. Absent if they are the same everywhere. */
  readonly pricesAt?: Readonly<Record<string, TokenPrices>>;
  /** The call counts in the costs of this group and of no other group. Absent if it does not. */
  readonly isBilled?: boolean;
  /** The team of the key in these costs. Absent if there is none. */
  readonly team?: string;
}

/** USD per token. */
export interface TokenPrices {
  readonly input: number;
  readonly output: number;
}

/** Requests and tokens of a call, either reserved at its grant or settled at its end. */
export interface CallUsage {
  readonly requests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** The use of a call, as counted by its upstream. */
export interface Settlement {
  /** 0 if the upstream does not count a call that it refused. */
  readonly requests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly usd: number;
  /** All tokens of the call, whether or not they count towards a limit. null if the upstream did not report them. */
  readonly seen: { readonly inputTokens: number; readonly outputTokens: number } | null;
  /** The part of its input that came from a cache. Absent if none did, or if unknown. */
  readonly cachedTokens?: number;
  /** Its price is unknown, so `usd` is 0. Absent if it is known. */
  readonly isUnpriced?: boolean;
  /** The entry in the costs of this group, for a call without a reservation. Absent if `Reserved` holds it. */
  readonly bill?: Bill;
}

/** The entry in the costs of a group for a call without a reservation. */
export interface Bill {
  /** The team of the key. null if there is none. */
  readonly team: string | null;
  /** The model in the request, or in the answer. null if neither is known. */
  readonly model: string | null;
}

/** Everything that a call reserves at its grant. */
export interface Demand extends CallUsage {
  readonly slots: number;
  /** Its expected cost. 0 if its price is unknown. */
  readonly usd: number;
  /** Costs at members, by member id. Absent if they are the same everywhere. */
  readonly usdAt?: ReadonlyMap<string, number>;
}

/** The part of the group's limits that a call reserves until its upstream has counted it. It is stored in the row. */
export interface Reserved {
  readonly demand: CallUsage;
  readonly usd: number;
  /** The uncorrected estimate of its input, to learn from. null if there was none. */
  readonly inputEstimate: number | null;
  /** The call counts in the costs of this group, and whether it was queued here. Absent if it does not count. */
  readonly billed?: 'at_once' | 'waited';
  /** Its price was unknown. Absent if it was known. */
  readonly isUnpriced?: true;
  /** The team that is charged. Absent if there is none. */
  readonly team?: string;
}

/** The lease on whose slots another one runs, and the number of slots that it takes. */
export interface NestedLease {
  readonly in: LeaseId;
  readonly slots: number;
}

/** A lease as its holder knows it. A group that does not know it can recreate it from this record. */
export interface LeaseRecord {
  readonly leaseId: LeaseId;
  readonly ticketId: TicketId;
  readonly holder: Holder;
  readonly lane: Lane;
  /** Slots that the call uses, including those that it shares with its parent. */
  readonly slots: number;
  /** The member in its answer. Absent if the group had no members then. */
  readonly member?: MemberId;
  /** The attachment number of the answer that carries it. null if unknown. */
  readonly attachment: number | null;
  /** null if it has slots of its own. */
  readonly nested: NestedLease | null;
  /** Leases that had its slot before, newest first. Empty if there were none, or if its holder does not report them. */
  readonly heirOf: readonly LeaseId[];
  /** The part of rates and budgets that it has reserved. null if there is none. */
  readonly reserved: Reserved | null;
  /** It is held by id now. Absent if it is held by its answer. */
  readonly isById?: boolean;
}
