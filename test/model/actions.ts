import fc from 'fast-check';
import type { LeaseOutcome } from '../../src/core/words/outcome.ts';
import {
  LEASE_TTL_MS,
  MOVE_SETTLE_MS,
  ORPHAN_GRACE_MS,
  RETURN_MAX_MS,
  SETTLE_MS,
  TOMBSTONE_TTL_MS,
  type GroupSettings,
  type MemberSettings,
} from '../../src/core/words/settings.ts';
import type { UpstreamSignal } from '../../src/core/words/signal.ts';
import type { Lane, Ticket } from '../../src/core/words/ticket.ts';
import { SOMEBODY, someMember, someSettings } from '../support/core-builders.ts';

/** Names of a call in its body and by its key. */
export interface ActionsCallNames {
  readonly model: string | null;
  readonly tier: string | null;
  readonly credential: string | null;
}

/** How a holder knows its lease. */
export interface ActionsReport {
  /** The attachment that it had so many answers ago; null: it knows none; `newer`: of an instance to come. */
  readonly back: number | null | 'newer';
  readonly hasLapsed: boolean;
}

/** The manner in which a call that belongs to several groups asks. */
type ActionsManner = Pick<Ticket, 'isTry' | 'waitsElsewhere' | 'needs' | 'hadTurn'>;

/**
 * Something that happens in a history. `pick` chooses among the tickets issued so far, the newest first;
 * where there is none, or the group may or may not remember its end, it means one that nobody knows.
 */
export type Action =
  | {
      readonly kind: 'ask';
      readonly sliceMs: number;
      readonly ageMs: number;
      readonly patienceMs: number | null;
      /** How long it may wait in place of what the group says; null: as the group says. */
      readonly timeoutMs: number | null;
      readonly wait: boolean;
      readonly tenant: string;
      readonly agent: string | null;
      /** Hash of its session, where it names no agent. Absent or null: none is known. */
      readonly session?: string | null;
      /** How long ago the agent run began, as its caller says. */
      readonly agentAgeMs: number | null;
      readonly lane: Lane;
      readonly slots: number;
      /** It understands that it need not be parked. */
      readonly mayAskLater: boolean;
      /** Its lease is held by its id. */
      readonly isById?: boolean;
      readonly manner: ActionsManner;
      /** Members that have refused it. */
      readonly excluded?: readonly string[];
      /** Names in its body, and its key. Absent if there are none. */
      readonly names?: ActionsCallNames;
      /** Its body was not read. */
      readonly isUnread?: boolean;
      /** The ticket, as `pick`, that waits for this one. */
      readonly parent: number | null;
    }
  /** A caller makes up so many names. Each one is refused. */
  | {
      readonly kind: 'make_up';
      readonly tenant: string;
      readonly of: keyof ActionsCallNames;
      readonly count: number;
      readonly signal: Partial<UpstreamSignal>;
    }
  /** A member changes its id and keeps its key. */
  | { readonly kind: 'rename'; readonly pick: number }
  /** Asks of so many, all in the same way. */
  | { readonly kind: 'crowd'; readonly count: number; readonly ask: ActionsAsk }
  | {
      readonly kind: 'ask_again';
      readonly pick: number;
      readonly sliceMs: number;
      readonly isAnew: boolean;
      /** It only tries this time. */
      readonly isTry?: boolean;
    }
  /** Another pool is full, and calls that need it are passed over. */
  | { readonly kind: 'pass_over'; readonly pool: string; readonly forMs: number }
  | { readonly kind: 'next_attempt'; readonly pick: number }
  | { readonly kind: 'renew' | 'confirm' | 'cancel' | 'revoke'; readonly pick: number }
  /** A holder tells of its lease, which the group may not know. */
  | ({ readonly kind: 'resume'; readonly pick: number } & ActionsReport)
  | {
      readonly kind: 'promote';
      readonly pick: number;
      readonly lane: Lane | null;
      readonly toFront: boolean;
    }
  /** Releases a lease; `told`: by its id, to an instance that may not have granted it. */
  | {
      readonly kind: 'release';
      readonly pick: number;
      readonly outcome: LeaseOutcome;
      readonly told: ActionsReport | null;
    }
  /** Releases one of the leases that are held, the oldest first. */
  | { readonly kind: 'end'; readonly pick: number; readonly outcome: LeaseOutcome }
  /** Drops the answer to the ask that many asks ago; 0 is the current one. */
  | { readonly kind: 'detach'; readonly pick: number; readonly back: number }
  | { readonly kind: 'reconfigure'; readonly changes: Partial<GroupSettings> }
  | { readonly kind: 'move' }
  | { readonly kind: 'relearn' }
  /** The upstream answers a running call, the oldest first. `told` is a ticket, by the id of its lease. */
  | {
      readonly kind: 'answer';
      readonly pick: number;
      readonly signal: Partial<UpstreamSignal>;
      readonly isRepeat: boolean;
      readonly told: ActionsReport | null;
      /** How its lease ends. null if it does not. */
      readonly end: LeaseOutcome | null;
    }
  | { readonly kind: 'advance'; readonly ms: number }
  /** Nobody is heard for so long, and the group is told. */
  | { readonly kind: 'held_up'; readonly ms: number }
  /** To the next instant at which time alone changes something, or a millisecond beside it. */
  | { readonly kind: 'advance_to_due'; readonly offsetMs: number }
  /** A row is written that nobody waits for. */
  | { readonly kind: 'write' }
  /** Writes take so long to arrive from now on. */
  | { readonly kind: 'lag'; readonly ms: number }
  /** The instance is replaced. Of the writes that are on their way the last few are lost. */
  | { readonly kind: 'reset'; readonly lost: number };

type ActionsAsk = Extract<Action, { kind: 'ask' }>;

const COOLDOWNS_MS = [0, 1, 200, 5_000] as const;
const SLICES_MS = [0, 1, 1_000, 8_000, 60_000] as const;

const cooldown = fc.constantFrom(...COOLDOWNS_MS, 'auto' as const);
const tenant = fc.constantFrom('ann', 'bob', 'cid');

/** The value that means "nothing special", most of the time. */
function mostly<Value>(usual: Value, ...others: Value[]): fc.Arbitrary<Value> {
  return fc.oneof({ weight: 3, arbitrary: fc.constant(usual) }, fc.constantFrom(usual, ...others));
}

/** How the group shares, in every combination. */
const sharingArb = fc.record({
  laneShares: mostly({ high: 0, normal: 0.1, low: 0.05 }, { high: 0, normal: 0.5, low: 0 }),
  ageCreditMs: fc.constantFrom(0, 1_000, 120_000, null),
  byAgent: fc.boolean(),
  weights: mostly<Record<string, number>>({}, { ann: 3 }, { bob: 0.5, cid: 2 }),
  reserved: mostly<Record<string, number>>({}, { ann: 1 }, { bob: 2, nobody: 1 }),
  reservedLanes: mostly<Partial<Record<Lane, number>>>({}, { low: 1 }, { high: 1, normal: 1 }),
  slotsMaxEach: mostly(Infinity, 1, 2, 3),
  slotsMaxEachAgent: mostly(Infinity, 1, 2),
  slotsPerCallMax: fc.constantFrom(1, 2, 3),
  queueLengthMaxEach: mostly(Infinity, 0, 2),
  queueLengthMaxEachAgent: mostly(Infinity, 1),
  nested: fc.constantFrom('reject' as const, 'pass' as const),
  isDraining: mostly(false, false, true),
  isDryRun: mostly(false, false, true),
});

/** Settings as small as a queue needs to be felt. */
export const settingsArb: fc.Arbitrary<GroupSettings> = fc
  .record({
    slotsMax: fc.constantFrom(0, 1, 2, 2, 3, 5, 8, 9, 12, Infinity),
    queueLengthMax: fc.constantFrom(0, 1, 3, 100, 100),
    timeoutMs: fc.constantFrom(0, 1_000, 30_000, 240_000, 240_000),
    paused: fc.nat(7).map((nat) => nat === 0),
    releaseCooldownMs: cooldown,
    cancelCooldownMs: cooldown,
    failureCooldownMs: fc.constantFrom(...COOLDOWNS_MS),
    sharing: sharingArb,
  })
  .map(({ sharing, ...settings }) => someSettings({ ...settings, ...sharing }));

const changesArb: fc.Arbitrary<Partial<GroupSettings>> = fc.oneof(
  fc.record({ slotsMax: fc.constantFrom(0, 1, 2, 3, Infinity) }),
  fc.record({ paused: fc.boolean() }),
  fc.record({ byAgent: fc.boolean() }),
  fc.record({ isDryRun: fc.boolean() }),
  settingsArb,
);

/** Every bound that the core keeps, a millisecond around it, and anything between. */
export const stepMsArb: fc.Arbitrary<number> = fc.oneof(
  fc.constantFrom(
    ...[
      LEASE_TTL_MS,
      SETTLE_MS,
      MOVE_SETTLE_MS,
      ORPHAN_GRACE_MS,
      RETURN_MAX_MS,
      30_000,
      200,
      1_000,
      8_000,
    ].flatMap((ms) => [ms - 1, ms, ms + 1]),
    0,
    1,
    50,
    TOMBSTONE_TTL_MS,
  ),
  fc.nat(2_000),
  fc.nat(60_000),
);

const pick = fc.nat(19);
const isAnew = fc.nat(5).map((nat) => nat === 0);
const outcome = fc.constantFrom<LeaseOutcome>('success', 'cancelled', 'failed', 'unused');

export const askArb = fc.record({
  kind: fc.constant('ask' as const),
  sliceMs: fc.constantFrom(...SLICES_MS, 30_000, 30_000),
  ageMs: fc.constantFrom(0, 0, 0, 1, 10, 5_000, 30_000, 999_999, -10),
  patienceMs: fc.constantFrom(null, null, 0, 1_000, 8_000, 300_000),
  timeoutMs: fc.constantFrom(null, null, null, null, 2_000, 600_000),
  wait: fc.nat(7).map((nat) => nat > 0),
  tenant,
  agent: fc.constantFrom(null, 'run-1', 'run-2'),
  session: fc.constantFrom(null, null, 'session-1', 'session-2'),
  agentAgeMs: fc.constantFrom(null, null, 0, 500, 60_000, 999_999_999, -5_000),
  lane: fc.constantFrom<Lane>('high', 'normal', 'normal', 'low'),
  slots: fc.constantFrom(1, 1, 1, 2, 3),
  manner: fc.constantFrom<ActionsManner>(
    ...[1, 2, 3, 4].map(() => ({ isTry: false, waitsElsewhere: false })),
    { isTry: true, waitsElsewhere: false },
    { isTry: true, waitsElsewhere: false, needs: ['wide'] },
    { isTry: false, waitsElsewhere: true, needs: [] },
    { isTry: false, waitsElsewhere: true, needs: ['wide'] },
    { isTry: false, waitsElsewhere: true, needs: ['wide', 'key:ci'] },
    { isTry: false, waitsElsewhere: true, needs: [], hadTurn: true },
  ),
  parent: fc.constantFrom(null, null, null, 0, 1),
  mayAskLater: fc.nat(3).map((nat) => nat > 0),
  isById: fc.nat(3).map((nat) => nat === 0),
});

function picked<Kind extends string>(kind: Kind): fc.Arbitrary<{ kind: Kind; pick: number }> {
  return fc.record({ kind: fc.constant(kind), pick });
}

export const reportedArb: fc.Arbitrary<ActionsReport> = fc.record({
  back: fc.constantFrom(0, 0, 0, 1, null, 'newer' as const),
  hasLapsed: fc.nat(5).map((nat) => nat === 0),
});

const passOverArb = fc.record({
  kind: fc.constant('pass_over' as const),
  pool: fc.constantFrom('wide', 'key:ci'),
  forMs: fc.constantFrom(0, 100, 1_000, 5_000, 60_000, Infinity),
});

/** One action. Asking, releasing and time are the most frequent, as in life. */
export const actionArb: fc.Arbitrary<Action> = fc.oneof(
  { weight: 8, arbitrary: askArb },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('ask_again' as const),
      pick,
      sliceMs: fc.constantFrom(...SLICES_MS),
      isAnew,
      isTry: fc.nat(4).map((nat) => nat === 0),
    }),
  },
  { weight: 1, arbitrary: passOverArb },
  { weight: 1, arbitrary: picked('next_attempt') },
  { weight: 3, arbitrary: picked('renew') },
  { weight: 2, arbitrary: picked('confirm') },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('promote' as const),
      pick,
      lane: fc.constantFrom<Lane | null>(null, 'high', 'low'),
      toFront: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: picked('cancel') },
  {
    weight: 3,
    arbitrary: fc
      .tuple(picked('resume'), reportedArb)
      .map(([one, reported]) => ({ ...one, ...reported })),
  },
  { weight: 2, arbitrary: picked('revoke') },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('release' as const),
      pick,
      outcome,
      told: fc.option(reportedArb),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('detach' as const), pick, back: fc.nat(2) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('reconfigure' as const), changes: changesArb }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'move' as const }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: stepMsArb }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('advance_to_due' as const),
      offsetMs: fc.constantFrom(-1, 0, 0, 1),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('held_up' as const), ms: stepMsArb }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('reset' as const),
      lost: fc.constantFrom(0, 0, 1, 2),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'write' as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('lag' as const),
      ms: fc.constantFrom(0, 0, 20, 1_500, 3_000),
    }),
  },
);

const IDS = ['m0', 'm1', 'm2', 'm3', 'm4'] as const;

const memberArb = (id: string): fc.Arbitrary<MemberSettings> =>
  fc
    .record({
      slotsMax: fc.constantFrom(1, 1, 2, 3, 12, Infinity),
      weight: fc.constantFrom(1, 1, 3),
    })
    .map((own) => someMember(id, { ...own, succeeds: id === 'm1' ? SOMEBODY.upstream : null }));

const membersArb = (minLength: number): fc.Arbitrary<MemberSettings[]> =>
  fc
    .tuple(fc.shuffledSubarray([...IDS], { minLength }), fc.tuple(...IDS.map(memberArb)))
    .map(([ids, all]) => ids.map((id) => all.find((each) => each.id === id) ?? someMember(id)));

const affinityArb = fc.record({
  by: fc.constantFrom('agent' as const, 'caller' as const, 'none' as const),
  forMs: fc.constantFrom(5_000, 300_000),
  waitMs: fc.constantFrom(0, 500, 2_000, 20_000),
});

/** Settings of a group of one to five members. Who may go where is all there is to it: nothing is let pass. */
export const memberSettingsArb: fc.Arbitrary<GroupSettings> = fc
  .record({
    settings: settingsArb,
    slotsMax: fc.constantFrom(2, 4, Infinity, Infinity),
    members: membersArb(1),
    affinity: affinityArb,
  })
  .map(({ settings, ...own }) => ({ ...settings, ...own, isDryRun: false }));

/** As `actionArb`, in a group whose members change now and then. */
export const memberActionArb: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 16,
    arbitrary: actionArb.map((action) =>
      action.kind === 'reconfigure'
        ? { ...action, changes: { paused: action.changes.paused === true, isDryRun: false } }
        : action,
    ),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(askArb, fc.shuffledSubarray([...IDS]))
      .map(([ask, excluded]) => ({ ...ask, excluded })),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('end' as const), pick, outcome }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('reconfigure' as const),
      changes: fc.record({ members: membersArb(0), affinity: affinityArb }),
    }),
  },
);

/** Settings under which many wait and are granted: whose turn it is, is all there is to it. */
export const busySettingsArb: fc.Arbitrary<GroupSettings> = fc
  .record({ slotsMax: fc.constantFrom(1, 2, 3, 5, 8), sharing: sharingArb })
  .map(({ slotsMax, sharing }) => {
    const open = { isDraining: false, isDryRun: false, queueLengthMaxEach: Infinity };
    return someSettings({ slotsMax, timeoutMs: 240_000, ...sharing, ...open });
  });

const PATIENT = { patienceMs: null, timeoutMs: null, wait: true, parent: null };

/** Calls that come and go, fast enough that nobody's slice ends. */
export const busyActionArb: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 8,
    arbitrary: askArb.map((ask) => ({ ...ask, ...PATIENT })),
  },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('end' as const), pick, outcome }) },
  { weight: 1, arbitrary: passOverArb },
  { weight: 1, arbitrary: picked('confirm') },
  { weight: 1, arbitrary: picked('renew') },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('promote' as const),
      pick,
      lane: fc.constantFrom<Lane | null>(null, 'high', 'low'),
      toFront: fc.nat(3).map((nat) => nat === 0),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.nat(3_000) }) },
);

/** Settings under which calls stand in a long line, and may stand there for long. */
export const crowdedSettingsArb: fc.Arbitrary<GroupSettings> = busySettingsArb.map((settings) => ({
  ...settings,
  timeoutMs: 3_600_000,
  queueLengthMax: 1_000,
}));

/** A call that waits for its turn, and no longer than the group lets it. */
export const PLAIN_ASK: ActionsAsk = {
  kind: 'ask',
  sliceMs: 30_000,
  ageMs: 0,
  patienceMs: null,
  timeoutMs: null,
  wait: true,
  tenant: 'ann',
  agent: null,
  agentAgeMs: null,
  lane: 'normal',
  slots: 1,
  manner: { isTry: false, waitsElsewhere: false },
  parent: null,
  mayAskLater: false,
};

/** As many calls of half a minute as it takes to know that they take so long. */
export const SLOW_CALLS: readonly Action[] = Array.from({ length: 10 }, (): Action[] => [
  PLAIN_ASK,
  { kind: 'advance', ms: 30_000 },
  { kind: 'end', pick: 0, outcome: 'success' },
]).flat();

/** Calls that come in crowds, of which some are so far back that nobody is parked for them. */
export const crowdedActionArb: fc.Arbitrary<Action> = fc.oneof(
  { weight: 12, arbitrary: busyActionArb },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('crowd' as const),
      count: fc.constantFrom(10, 20, 40, 110),
      ask: askArb.map((ask) => ({ ...ask, ...PATIENT, slots: 1 })),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('ask_again' as const),
      pick: fc.nat(60),
      sliceMs: fc.constantFrom(...SLICES_MS),
      isAnew,
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: stepMsArb }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'move' as const }) },
  { weight: 1, arbitrary: picked('cancel') },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('reset' as const), lost: fc.constantFrom(0, 1) }),
  },
);
