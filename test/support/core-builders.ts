import { emptyControls, type Controls, type Member } from '../../src/core/member.ts';
import type { Effect, GroupEvent } from '../../src/core/events.ts';
import {
  instant,
  leaseIdOf,
  memberId,
  ticketId,
  type InstantMs,
} from '../../src/core/words/ids.ts';
import { checkInvariants } from '../../src/core/invariants.ts';
import type { LeaseOutcome, Rejection } from '../../src/core/words/outcome.ts';
import { recover, emptyState, type Stored } from '../../src/core/recover.ts';
import {
  BREAKER_DEFAULTS,
  type MemberSettings,
  type GroupSettings,
} from '../../src/core/words/settings.ts';
import { SERVED, type UpstreamSignal } from '../../src/core/words/signal.ts';
import type { GroupState, ActiveLease } from '../../src/core/state.ts';
import { nextWakeAt, step } from '../../src/core/step.ts';
import {
  LANES,
  type Holder,
  type Lane,
  type Ticket,
  type Settlement,
} from '../../src/core/words/ticket.ts';
import type { Claim } from '../../src/core/orphaned.ts';
import type { QueuePosition } from '../../src/core/parts/decision-log.ts';
import { NO_RATES } from '../../src/core/parts/rate-limits.ts';
import { confirmWrite, takeWrite, type GroupWrite } from '../../src/core/writes.ts';

/** When the virtual clock of every test starts. */
export const START = instant(1_000_000_000);

/** No rates and no budgets, and slots that are configured. */
export const UNMETERED = {
  isHard: true,
  isAdaptive: true,
  rates: NO_RATES,
  budgets: { perHourUsd: null, perDayUsd: null, perMonthUsd: null },
  isMetered: false,
  breaker: BREAKER_DEFAULTS,
  probesPauses: true,
} as const satisfies Partial<GroupSettings>;

/** Two slots, room to wait, and no cool-downs unless a test says so. */
export function someSettings(changes: Partial<GroupSettings> = {}): GroupSettings {
  return {
    ...UNMETERED,
    slotsMax: 2,
    queueLengthMax: 100,
    timeoutMs: 60_000,
    paused: false,
    releaseCooldownMs: 0,
    cancelCooldownMs: 0,
    failureCooldownMs: 0,
    laneShares: { high: 0, normal: 0.1, low: 0.05 },
    ageCreditMs: 120_000,
    byAgent: false,
    weights: {},
    reserved: {},
    reservedLanes: {},
    slotsMaxEach: Infinity,
    slotsMaxEachAgent: Infinity,
    slotsPerCallMax: 8,
    queueLengthMaxEach: Infinity,
    queueLengthMaxEachAgent: Infinity,
    nested: 'reject',
    isDraining: false,
    isDryRun: false,
    members: [],
    affinity: { by: 'agent', forMs: 300_000, waitMs: 2_000 },
    ...changes,
  };
}

/** A member with two slots of its own, with changes. */
export function someMember(id: string, changes: Partial<MemberSettings> = {}): MemberSettings {
  const own = { weight: 1, tier: 1, isEnabled: true, succeeds: null, place: `key of ${id}` };
  return { id: memberId(id), ...UNMETERED, slotsMax: 2, ...own, ...changes };
}

export const SOMEBODY: Holder = {
  tenant: 'somebody',
  caller: 'somebody',
  agent: null,
  upstream: 'openai',
  model: null,
};

/** Options of an ask. Instants are milliseconds after `START`. */
export interface AskOptions {
  readonly attempt?: number;
  readonly sliceMs?: number;
  readonly mayAskLater?: boolean;
  readonly enqueuedMs?: number;
  readonly deadlineMs?: number;
  readonly timeoutMs?: number;
  readonly wait?: boolean;
  readonly tenant?: string;
  /** The tenant, where nothing else is said. */
  readonly caller?: string;
  readonly agent?: string | null;
  /** Hash of its session. */
  readonly session?: string;
  /** Its Worker can find its session, and has not looked for it. */
  readonly mayNameSession?: boolean;
  /** Names that decide which refusals hold it. */
  readonly names?: Partial<Pick<Holder, 'model' | 'tier' | 'credential' | 'isUnread'>>;
  /** When the agent run began, as its caller says. */
  readonly agentMs?: number;
  readonly lane?: Lane;
  readonly slots?: number;
  readonly isTry?: boolean;
  readonly waitsElsewhere?: boolean;
  readonly needs?: readonly string[];
  readonly hadTurn?: boolean;
  readonly isById?: boolean;
  /** The isolate of its Worker, which may start calls on slots that it is lent. */
  readonly isolate?: string;
  /** Names of the calls that wait for this one. */
  readonly parents?: readonly string[];
  /** Ids of members that it cannot go to. */
  readonly excluded?: readonly string[];
  /** Those of them that it may go to once they have served others. */
  readonly excludedForNow?: readonly string[];
  /** Its expected use: one token of input, for so much; and at members, where that is not the same. */
  readonly estimate?: {
    readonly price: number;
    readonly pricesAt?: Readonly<Record<string, number>>;
  };
}

/** A plain ticket of `SOMEBODY`, with changes. */
export function someTicket(name: string, at: InstantMs, changes: Partial<Ticket> = {}): Ticket {
  return {
    id: ticketId(name),
    holder: SOMEBODY,
    lane: 'normal',
    slots: 1,
    enqueuedAt: at,
    agentStartedAt: null,
    deadlineAt: null,
    wait: true,
    estimate: null,
    isTry: false,
    waitsElsewhere: false,
    parents: [],
    ...changes,
  };
}

/** A ticket as a test describes it, at `now`. */
function ticketFrom(name: string, now: InstantMs, options: AskOptions): Ticket {
  const at = (ms: number | undefined) => (ms === undefined ? null : instant(START + ms));
  const { tenant = SOMEBODY.tenant, agent = null, parents = [] } = options;
  const { caller = tenant, lane = 'normal', slots = 1, wait = true, isTry = false } = options;
  const { waitsElsewhere = false, isById = false } = options;
  const { needs, hadTurn, isolate, timeoutMs, session, mayNameSession = false } = options;
  return someTicket(name, at(options.enqueuedMs) ?? now, {
    holder: {
      ...SOMEBODY,
      tenant,
      caller,
      agent,
      ...(session !== undefined && { session }),
      ...options.names,
    },
    ...(mayNameSession && { mayNameSession }),
    ...(isolate !== undefined && { isolate }),
    lane,
    slots,
    wait,
    isTry,
    waitsElsewhere,
    ...(needs !== undefined && { needs }),
    ...(hadTurn !== undefined && { hadTurn }),
    isById,
    agentStartedAt: at(options.agentMs),
    deadlineAt: at(options.deadlineMs),
    ...(timeoutMs !== undefined && { timeoutMs }),
    parents: parents.map((parent) => leaseIdOf(ticketId(parent), 1)),
    excluded: (options.excluded ?? []).map(memberId),
    excludedForNow: (options.excludedForNow ?? []).map(memberId),
    estimate: estimateOf(options.estimate),
  });
}

function estimateOf(estimate: AskOptions['estimate']): Ticket['estimate'] {
  if (estimate === undefined) return null;
  const priceOf = (input: number) => ({ input, output: 0 });
  const at = Object.entries(estimate.pricesAt ?? {}).map(([id, each]) => [id, priceOf(each)]);
  const pricesAt = at.length === 0 ? {} : { pricesAt: Object.fromEntries(at) };
  const price = priceOf(estimate.price);
  return { inputTokens: 1, maxOutputTokens: 0, reserve: 'none', price, ...pricesAt };
}

/** The answers among the effects, in words and in order: `grant a.1`, `reject b busy`. */
export function answersOf(effects: readonly Effect[]): string[] {
  return effects.flatMap((effect) => {
    switch (effect.kind) {
      case 'write':
        return [];
      case 'grant':
        return [`grant ${effect.lease.id}`];
      case 'pending':
        return [`pending ${effect.ticketId} at ${effect.position}${againOf(effect)}`];
      case 'reject':
        return [`reject ${effect.ticketId} ${effect.rejection.reason}`];
      case 'declined':
        return [
          `declined ${effect.ticketId}${effect.waitMs === null ? '' : ` for ${effect.waitMs}`}`,
        ];
      case 'gone':
      case 'moved':
      case 'unread':
        return [`${effect.kind} ${effect.ticketId}`];
      case 'recalled':
        return [`recalled ${effect.loanId}`];
      case 'revoked':
      case 'ended':
        return [`${effect.kind} ${effect.leaseId}`];
    }
  });
}

function againOf({ askAgainMs }: Extract<Effect, { kind: 'pending' }>): string {
  return askAgainMs === null ? '' : ` again in ${askAgainMs}`;
}

/** The controls as they come back from their row. */
export function keptControls({ controls }: Pick<GroupState, 'controls'>): Controls {
  return JSON.parse(JSON.stringify(controls)) as Controls;
}

/** Nothing is stored of the instances before. */
export function nothingStored(): Stored {
  return { bound: null, untold: [], controls: emptyControls(START), ahead: {} };
}

/** A lease as its holder tells of it, with changes. */
export function someClaim(name: string, changes: Partial<Claim> = {}): Claim {
  const id = ticketId(name);
  return {
    leaseId: leaseIdOf(id, 1),
    ticketId: id,
    holder: SOMEBODY,
    lane: 'normal',
    slots: 1,
    attachment: null,
    hasLapsed: false,
    heldMs: 0,
    nested: null,
    heirOf: [],
    reserved: null,
    ...changes,
  };
}

/**
 * The core on a virtual clock. Tickets go by their names, and a lease by its ticket's name as long as
 * there is one attempt. Every event is followed by a check of the invariants.
 */
export class TestGroup {
  now: InstantMs;
  readonly state: GroupState;
  /** The rows on disk. */
  stored: Stored = nothingStored();
  /** The effects of the last event. */
  effects: readonly Effect[] = [];

  constructor(settings: Partial<GroupSettings> = {}, state?: GroupState, now: InstantMs = START) {
    this.now = now;
    this.state = state ?? emptyState(someSettings(settings), 1);
  }

  /** As if some calls had ended, which took as long as it guesses anyway. */
  learned(): this {
    this.state.holdSamples = 5;
    return this;
  }

  /** The same, of which everything that it hands out is covered on disk. */
  static stored(settings: Partial<GroupSettings> = {}): TestGroup {
    return new TestGroup({}, emptyState(someSettings(settings), 1, emptyControls(START), true));
  }

  /** Writes what is to be written; it arrives at once. */
  write(): GroupWrite {
    const write = takeWrite(this.state, this.now);
    const { bound, kept, isInRing } = write;
    const untold = isInRing ? [] : bound.ended;
    const ended = [...(this.stored.bound?.ended ?? []), ...bound.ended];
    const lapsed = [...(this.stored.bound?.lapsed ?? []), ...bound.lapsed];
    const controls = kept === null ? this.stored.controls : keptControls(kept);
    const ahead = kept?.ahead ?? this.stored.ahead;
    const members = kept === null ? this.stored.members : kept.members;
    const ofMembers = members === undefined ? {} : { members: structuredClone(members) };
    const all = { bound: { ...bound, ended, lapsed }, untold, controls, ahead };
    const written = write.upstreams && Object.fromEntries(write.upstreams);
    const upstreams = structuredClone(written ?? this.stored.upstreams ?? {});
    this.stored = { ...all, ...ofMembers, upstreams };
    confirmWrite(this.state, bound.seq);
    return write;
  }

  /** The group after a reset: a new instance that knows what is on disk. */
  reset(stored: Stored = this.stored): TestGroup {
    const { settings, bound, nextAttachment } = this.state;
    const copy = JSON.parse(JSON.stringify(stored)) as Stored;
    const state = recover(settings, copy, nextAttachment + 1_000, bound.isStored, this.now);
    const group = new TestGroup({}, state, this.now);
    group.stored = stored;
    return group;
  }

  /** The group after a reset, before which everything was written. */
  restart(): TestGroup {
    this.write();
    return this.reset();
  }

  send(event: GroupEvent): string[] {
    this.effects = step(this.state, event, this.now);
    const broken = checkInvariants(this.state, this.now);
    if (broken.length > 0) throw new Error(broken.join('; '));
    return answersOf(this.effects);
  }

  ask(name: string, options: AskOptions = {}): string[] {
    const { attempt = 1, sliceMs = 30_000, mayAskLater = false } = options;
    const ticket = ticketFrom(name, this.now, options);
    const leaseId = leaseIdOf(ticket.id, attempt);
    return this.send({ kind: 'acquire', ticket, leaseId, sliceMs, mayAskLater });
  }

  /** Lets every named ticket ask, one after the other. */
  askAll(...names: string[]): string[] {
    return names.flatMap((name) => this.ask(name));
  }

  renew(name: string): string[] {
    return this.send({ kind: 'renew', leaseId: leaseIdOf(ticketId(name), 1) });
  }

  release(
    name: string,
    outcome: LeaseOutcome = 'success',
    attempt = 1,
    settlement: Settlement | null = null,
  ): string[] {
    const leaseId = leaseIdOf(ticketId(name), attempt);
    return this.send({ kind: 'release', leaseId, outcome, settlement });
  }

  /** The upstream answers a call. */
  report(name: string, signal: Partial<UpstreamSignal>, isRepeat = false, attempt = 1): string[] {
    const leaseId = leaseIdOf(ticketId(name), attempt);
    return this.send({ kind: 'report', leaseId, signal: { ...SERVED, ...signal }, isRepeat });
  }

  detach(name: string, attachment: number): string[] {
    return this.send({ kind: 'detach', leaseId: leaseIdOf(ticketId(name), 1), attachment });
  }

  cancel(name: string): string[] {
    return this.send({ kind: 'cancel', ticketId: ticketId(name) });
  }

  resume(name: string, changes: Partial<Claim> = {}): string[] {
    return this.send({ kind: 'resume', claim: someClaim(name, changes) });
  }

  /** Another pool is full for so long. */
  passOver(pool: string, forMs: number): string[] {
    return this.send({ kind: 'pass_over', pool, forMs });
  }

  confirm(name: string): string[] {
    return this.send({ kind: 'confirm', leaseId: leaseIdOf(ticketId(name), 1) });
  }

  /** Puts a waiter first, or into another lane. */
  promote(name: string, lane: Lane | null = null, toFront = lane === null): string[] {
    return this.send({ kind: 'promote', ticketId: ticketId(name), lane, toFront });
  }

  revoke(name: string): string[] {
    return this.send({ kind: 'revoke', leaseId: leaseIdOf(ticketId(name), 1) });
  }

  reconfigure(changes: Partial<GroupSettings>): string[] {
    return this.send({ kind: 'reconfigure', settings: { ...this.state.settings, ...changes } });
  }

  move(): string[] {
    return this.send({ kind: 'move' });
  }

  tick(): string[] {
    return this.send({ kind: 'tick' });
  }

  /** Lets time pass and ticks once, at its end. */
  advance(ms: number): string[] {
    this.now = instant(this.now + ms);
    return this.tick();
  }

  /** The lease of a ticket's first attempt; a test that asks for one that is not there is wrong. */
  lease(name: string): ActiveLease {
    const lease = this.state.leases.get(leaseIdOf(ticketId(name), 1));
    if (lease === undefined) throw new Error(`${name} has no lease`);
    return lease;
  }

  /** The rejection that the last event gave to a ticket. */
  rejection(name: string): Rejection {
    const found = this.effects.find((each) => each.kind === 'reject' && each.ticketId === name);
    if (found?.kind === 'reject') return found.rejection;
    throw new Error(`${name} was not rejected`);
  }

  /** The estimate that the last event gave to a ticket whose slice ended. */
  estimate(name: string): number | null {
    for (const effect of this.effects) {
      if (effect.kind === 'pending' && effect.ticketId === name) return effect.estimateMs;
    }
    throw new Error(`${name} was not told to ask again`);
  }

  /** The place that the last event told a ticket. */
  place(name: string): QueuePosition {
    const found = this.effects.find((each) => each.kind === 'pending' && each.ticketId === name);
    if (found?.kind === 'pending') return found;
    throw new Error(`${name} was not told its place`);
  }

  /** Whether the last event asked for a write, and whether an answer waits for it. */
  asksToWrite(): 'no' | 'soon' | 'ahead' | 'behind' {
    const isWaited = this.effects.some((effect) => effect.kind === 'grant' && !effect.isCovered);
    if (isWaited) return 'behind';
    const write = this.effects.find((effect) => effect.kind === 'write');
    if (write === undefined) return 'no';
    return write.isAhead ? 'ahead' : 'soon';
  }

  /** Its only member, or the one of that name. */
  member(id = ''): Member {
    const member = this.state.members.get(memberId(id));
    if (member === undefined) throw new Error(`${id} is no member`);
    return member;
  }

  /** Slots in use. */
  inUse(): number {
    return this.state.slotsInUse;
  }

  /** The names of those who wait: by lane, then by line, and oldest first in a line. */
  waiting(): string[] {
    const { lanes } = this.state.queue;
    const lines = LANES.flatMap((lane) => lanes[lane].lines);
    return lines.flatMap(({ waiters }) => waiters.map(({ ticket }) => ticket.id));
  }

  /** Gives the service of a tenant, by the count of a lane. */
  service(tenant: string, lane: Lane = 'normal'): number {
    return this.state.accounts.tenants.get(tenant)?.shares[lane].service ?? 0;
  }

  /** Milliseconds until the group wants to be woken. */
  wakesIn(): number {
    return nextWakeAt(this.state, this.now) - this.now;
  }
}
