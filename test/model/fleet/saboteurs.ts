import type { LocalPrefetch, LocalSlot } from '../../../src/call/acquire/local-prefetch.ts';
import type { Effect, GroupEvent } from '../../../src/core/events.ts';
import {
  isCovered,
  COVERS_MS,
  RENEWED_BEHIND_MS,
  writesOf,
} from '../../../src/core/parts/bound.ts';
import { Tombstones } from '../../../src/core/parts/queue.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { slotsHeld } from '../../../src/core/stats.ts';
import { memberId, type InstantMs } from '../../../src/core/words/ids.ts';
import * as histories from './histories.ts';
import type { FleetHistory } from './histories.ts';
import { DESIGN, type Rules } from './rules.ts';

/** A rule that is taken out of the design, and the history that must notice. */
export interface Saboteur {
  readonly rule: string;
  readonly rules: Partial<Rules>;
  readonly history: FleetHistory;
  /** The words of the fleet. */
  readonly noticed: RegExp;
}

const UNCOUNTED = /are held by calls that are not known/;
const ABOVE_MARK = /slots are held above the mark/;
const TOO_MANY = /slots are held at once/;
const MISPLACED = /are not counted where they run/;

/** Lets grants leave that the design lets wait. */
function covering(
  mayLeave: (state: GroupState, now: InstantMs) => boolean,
  prepare: (state: GroupState, heldBefore: number, effects: readonly Effect[]) => void = () => {},
): Rules['step'] {
  return (state, event, now) => {
    const heldBefore = slotsHeld(state);
    const effects = DESIGN.step(state, event, now);
    prepare(state, heldBefore, effects);
    return effects.map((effect) =>
      effect.kind === 'grant' && mayLeave(state, now) ? { ...effect, isCovered: true } : effect,
    );
  };
}

function isYoung({ bound }: GroupState, now: InstantMs): boolean {
  return bound.confirmed !== null && now < bound.confirmed.at + COVERS_MS;
}

/** Gives the slots that a step has freed back to what may be handed out unwritten. */
function giveRoomBack(state: GroupState, heldBefore: number, effects: readonly Effect[]): void {
  const { confirmed } = state.bound;
  let granted = 0;
  for (const effect of effects) if (effect.kind === 'grant') granted += effect.lease.slots;
  const freed = heldBefore + granted - slotsHeld(state);
  if (confirmed !== null && freed > 0) {
    Object.assign(confirmed, { held: confirmed.held - freed });
  }
}

function claiming(change: (event: GroupEvent) => GroupEvent): Rules['step'] {
  return (state, event, now) => DESIGN.step(state, change(event), now);
}

/** Takes a release for one of a lease that nobody has ended yet. */
function forgettingEnds(state: GroupState, event: GroupEvent, now: InstantMs): Effect[] {
  const isById = event.kind === 'release' && event.claim !== undefined;
  if (isById && !state.leases.has(event.leaseId)) {
    state.bound.unclaimable.clear();
    Object.assign(state, { tombstones: new Tombstones() });
  }
  return DESIGN.step(state, event, now);
}

/** Takes a connection that breaks for the only word of its holder. */
function passingLost(state: GroupState, event: GroupEvent, now: InstantMs): Effect[] {
  if (event.kind !== 'detach') return DESIGN.step(state, event, now);
  const { leaseId, attachment } = event;
  if (state.leases.get(leaseId)?.attachment !== attachment) return DESIGN.step(state, event, now);
  const end = { outcome: 'cancelled', settlement: null, isSole: true } as const;
  return DESIGN.step(state, { kind: 'release', leaseId, ...end }, now);
}

/** Takes slots that came free for ones of the member of whose call nobody has heard. */
function passingElsewhere(state: GroupState, event: GroupEvent, now: InstantMs): Effect[] {
  const lost = event.kind === 'detach' ? state.leases.get(event.leaseId) : undefined;
  for (const { vacated } of lost === undefined ? [] : writesOf(state.bound)) {
    for (const slot of vacated.values()) Object.assign(slot, { member: lost?.member });
  }
  return DESIGN.step(state, event, now);
}

/** Takes slots that are given back for ones that nobody has given back yet. */
function forgettingBacks(state: GroupState, event: GroupEvent, now: InstantMs): Effect[] {
  if (event.kind === 'give_back') {
    state.bound.unclaimable.clear();
    Object.assign(state, { tombstones: new Tombstones() });
  }
  return DESIGN.step(state, event, now);
}

/** Has calls start on the slot of the call before, whatever became of it. */
function borrowingAgain(): Rules['borrow'] {
  const last = new WeakMap<LocalPrefetch, LocalSlot>();
  return (prefetch) => {
    const slot = prefetch.take() ?? last.get(prefetch) ?? null;
    if (slot !== null) last.set(prefetch, slot);
    return slot;
  };
}

export const SABOTEURS: readonly Saboteur[] = [
  {
    rule: 'nothing starts on a loan that was not renewed lately',
    rules: {
      borrow: (prefetch, now) => {
        prefetch.noteRenewed(now);
        return prefetch.take();
      },
    },
    history: histories.PREFETCHED_LONG_AGO,
    noticed: /a call starts on a slot that is not held any more/,
  },
  {
    rule: 'a slot that was given back is not subtracted once more',
    rules: { step: forgettingBacks },
    history: histories.GIVEN_BACK_TWICE,
    noticed: UNCOUNTED,
  },
  {
    rule: 'a slot of a loan that has lapsed is claimed by nobody',
    rules: {
      step: claiming((event) => {
        if (event.kind !== 'resume') return event;
        const { lent: _, ...claim } = event.claim;
        return { ...event, claim };
      }),
    },
    history: histories.OWN_LEASE_TOO_LATE,
    noticed: UNCOUNTED,
  },
  {
    rule: 'nothing starts on a slot that was given back',
    rules: { borrow: borrowingAgain() },
    history: histories.CALLED_BACK,
    noticed: UNCOUNTED,
  },
  {
    rule: 'lent slots are wanted back as soon as somebody else could want them',
    rules: {
      step: (state, event, now) =>
        DESIGN.step(state, event, now).filter(({ kind }) => kind !== 'recalled'),
    },
    history: histories.WAITS_FOR_PREFETCHED_ONES,
    noticed: /a call waits while slots are lent on which none runs/,
  },
  {
    rule: 'that a loan is called back renews it for nobody',
    rules: { recallRenews: true },
    history: histories.CALLED_BACK_BY_THE_OLDER,
    noticed: UNCOUNTED,
  },
  {
    rule: 'slots of a loan that was called back are not counted by themselves',
    rules: {
      takeIn: (last, { loan: prefetch }) =>
        last?.id === prefetch && !last.isOver ? 'adds' : 'anew',
    },
    history: histories.PREFETCHED_TOO_LATE,
    noticed: UNCOUNTED,
  },
  {
    rule: 'an isolate tells how many slots it knows',
    rules: {
      step: claiming((event) =>
        event.kind === 'keep_loan' ? { ...event, told: { ...event.told, known: Infinity } } : event,
      ),
    },
    history: histories.PREFETCHED_TO_NOBODY,
    noticed: /slots are lent to nobody/,
  },
  {
    rule: 'what is lent is covered by a write as what is granted',
    rules: {
      step: covering(
        ({ bound }, now) => isCovered(bound, now),
        ({ bound: { confirmed } }, _heldBefore, effects) => {
          for (const effect of effects) {
            if (effect.kind !== 'grant' || confirmed === null) continue;
            confirmed.granted -= effect.lent?.slots.length ?? 0;
          }
        },
      ),
    },
    history: histories.PREFETCHED_ABOVE_THE_MARK,
    noticed: ABOVE_MARK,
  },
  {
    rule: 'a write tells which leases have ended',
    rules: { row: (row) => ({ ...row, ended: [] }) },
    history: histories.RELEASED_TWICE,
    noticed: UNCOUNTED,
  },
  {
    rule: 'a release of a lease that has ended subtracts nothing',
    rules: { step: forgettingEnds },
    history: histories.RELEASED_TWICE,
    noticed: UNCOUNTED,
  },
  {
    rule: 'what ended since the last write gives no room back',
    rules: { step: covering(({ bound }, now) => isCovered(bound, now), giveRoomBack) },
    history: histories.ENDED_SINCE_THE_WRITE,
    noticed: UNCOUNTED,
  },
  {
    rule: 'a write covers what was held at its issue, not at its confirmation',
    rules: {
      confirm: (state, seq, now) => {
        DESIGN.confirm(state, seq, now);
        const { confirmed } = state.bound;
        if (confirmed !== null) Object.assign(confirmed, { held: slotsHeld(state), granted: 0 });
      },
    },
    history: histories.ENDED_WHILE_WRITING,
    noticed: UNCOUNTED,
  },
  {
    rule: 'a raised mark covers nothing before it is confirmed',
    rules: {
      step: covering((state, now) => {
        const { confirmed, inFlight } = state.bound;
        const marks = [confirmed, ...inFlight].map((write) => write?.mark ?? 0);
        const handedOut = (confirmed?.held ?? 0) + (confirmed?.granted ?? 0);
        return isYoung(state, now) && handedOut <= Math.max(...marks);
      }),
    },
    history: histories.ABOVE_THE_MARK,
    noticed: ABOVE_MARK,
  },
  {
    rule: 'a free slot above the mark is granted behind a write',
    rules: { step: covering(isYoung) },
    history: histories.ABOVE_THE_MARK,
    noticed: ABOVE_MARK,
  },
  {
    rule: 'a write covers grants for a short time only',
    rules: {
      step: covering(
        ({ bound }) => bound.confirmed !== null && isCovered(bound, bound.confirmed.at),
      ),
    },
    history: histories.ASLEEP_WITH_ROOM,
    noticed: UNCOUNTED,
  },
  {
    rule: 'the age of a write counts from its issue',
    rules: {
      confirm: (state, seq, now) => {
        DESIGN.confirm(state, seq, now);
        const { confirmed } = state.bound;
        if (confirmed !== null) Object.assign(confirmed, { at: now });
      },
    },
    history: histories.CONFIRMED_LATE,
    noticed: UNCOUNTED,
  },
  {
    rule: 'once nothing is unclaimed, older leases have no slot any more',
    rules: { row: (row, last) => ({ ...row, since: last?.since ?? row.since }) },
    history: histories.LAPSED_UNKNOWN,
    noticed: UNCOUNTED,
  },
  {
    rule: 'a holder ignores that its lease is gone at an older instance',
    rules: { believesGone: () => true },
    history: histories.GONE_AT_THE_OLDER,
    noticed: /a holder is stopped whose lease the current instance holds/,
  },
  {
    rule: 'after each reset what is unclaimed has a whole TTL',
    rules: {
      load: (state, before) => {
        if (before !== null && before.unclaimed.until > 0) {
          state.unclaimed.until = before.unclaimed.until;
        }
      },
    },
    history: histories.RESETS_IN_A_ROW,
    noticed: UNCOUNTED,
  },
  {
    rule: 'a holder whose lease has lapsed claims nothing',
    rules: {
      step: claiming((event) =>
        event.kind === 'resume' ? { ...event, claim: { ...event.claim, hasLapsed: false } } : event,
      ),
    },
    history: histories.BACK_AFTER_A_TTL,
    noticed: UNCOUNTED,
  },
  {
    rule: 'a renewal is answered behind a write that is not old',
    rules: { mayAcknowledge: () => true },
    history: histories.LEFT_ALONE,
    noticed: UNCOUNTED,
  },
  {
    rule: 'a write that has not arrived acknowledges nothing, and ends its instance',
    rules: {
      givesUp: false,
      mayAcknowledge: (_arrivedAt, now, issuedAt) => now < issuedAt + RENEWED_BEHIND_MS,
    },
    history: histories.WRITES_IN_VAIN,
    noticed: UNCOUNTED,
  },
  {
    rule: 'an older instance refuses a lease that a newer one has granted',
    rules: { refuses: () => false },
    history: histories.RESUMED_AT_THE_OLDER,
    noticed: UNCOUNTED,
  },
  ...[
    histories.LOST_AT_THE_OLDER,
    histories.LAPSED_AT_THE_OLDER,
    histories.PREFETCH_LAPSED_AT_THE_OLDER,
  ].map((history, index) => ({
    rule: `a slot of whose holder nobody has heard is handed on behind a write (${index + 1})`,
    rules: {
      step: covering(
        ({ bound }, now) => isCovered(bound, now),
        ({ bound }) => (bound.lostSeq = 0),
      ),
    },
    history,
    noticed: TOO_MANY,
  })),
  {
    rule: 'no margin is added to what is unclaimed',
    rules: { row: (row) => ({ ...row, mark: row.mark + 4 }) },
    history: histories.MANY_RESETS,
    noticed: /the mark has risen/,
  },
  {
    rule: 'a write tells which leases are revoked',
    rules: { row: (row) => ({ ...row, ended: [] }) },
    history: histories.REVOKED,
    noticed: /a lease that was revoked is taken up again/,
  },
  {
    rule: 'a write names the heirs',
    rules: { row: (row) => ({ ...row, heirs: [] }) },
    history: histories.PASSED_AND_RELEASED_TWICE,
    noticed: UNCOUNTED,
  },
  {
    rule: 'what is given back stays unclaimed while an heir may have it',
    rules: {
      step: (state, event, now) => {
        if (event.kind === 'release') state.bound.heirsBefore.clear();
        return DESIGN.step(state, event, now);
      },
    },
    history: histories.PASSED_AND_RELEASED_TWICE,
    noticed: UNCOUNTED,
  },
  {
    rule: 'an heir that may have its answer elsewhere stays one',
    rules: {
      step: (state, event, now) => {
        const isAnew = state.bound.heirsBefore.size > 0;
        return DESIGN.step(state, event.kind === 'acquire' ? { ...event, isAnew } : event, now);
      },
    },
    history: histories.PASSED_AT_THE_OLDER,
    noticed: UNCOUNTED,
  },
  {
    rule: 'a slot is passed on by the only word of its holder',
    rules: {
      step: claiming((event) => (event.kind === 'release' ? { ...event, isSole: true } : event)),
    },
    history: histories.RESUMED_AND_RELEASED_AT_THE_OLDER,
    noticed: UNCOUNTED,
  },
  {
    rule: 'a slot of whose holder nobody has heard goes to no heir unwritten',
    rules: { step: passingLost },
    history: histories.LOST_BESIDE_NEXT_HOLDERS,
    noticed: UNCOUNTED,
  },
  {
    rule: 'a lease that its caller may ask for by the last row passes nothing on',
    rules: {
      step: (state, event, now) => {
        for (const write of writesOf(state.bound)) Object.assign(write, { answering: new Set() });
        return DESIGN.step(state, event, now);
      },
    },
    history: histories.ASKED_AGAIN_AFTER_ITS_END,
    noticed: UNCOUNTED,
  },
  {
    rule: 'a write has a mark for each member',
    rules: {
      row: (row) => {
        const { mark, held, members } = row;
        const [first] = Object.keys(members ?? {});
        return first === undefined ? row : { ...row, members: { [first]: { mark, held } } };
      },
    },
    history: histories.HELD_AT_EACH,
    noticed: MISPLACED,
  },
  {
    rule: 'a holder tells at which member its call runs',
    rules: {
      step: claiming((event) => {
        if (event.kind !== 'resume') return event;
        const { member: _, ...claim } = event.claim;
        return { ...event, claim };
      }),
    },
    history: histories.CLAIMED_AT_EACH,
    noticed: MISPLACED,
  },
  {
    rule: 'a lease counts where its holder says that it runs',
    rules: {
      step: (state, event, now) => {
        if (event.kind !== 'resume') return DESIGN.step(state, event, now);
        const member = state.leases.get(event.claim.leaseId)?.named ?? event.claim.member;
        const claim = { ...event.claim, ...(member !== undefined && { member }) };
        return DESIGN.step(state, { ...event, claim }, now);
      },
    },
    history: histories.GRANTED_ELSEWHERE,
    noticed: MISPLACED,
  },
  {
    rule: 'a claim counts at the member where its call runs',
    rules: {
      step: claiming((event) => {
        if (event.kind !== 'resume') return event;
        const member = memberId(event.claim.member === 'm0' ? 'm1' : 'm0');
        return { ...event, claim: { ...event.claim, member } };
      }),
    },
    history: histories.CLAIMED_AT_EACH,
    noticed: MISPLACED,
  },
  {
    rule: 'an heir has a slot of the member where that came free',
    rules: { step: passingElsewhere },
    history: histories.NEXT_HOLDER_AT_THE_OTHER,
    noticed: MISPLACED,
  },
];
