import assert from 'node:assert/strict';
import type { GroupSettings } from '../../../src/core/words/settings.ts';
import { someMember } from '../../support/core-builders.ts';
import type { FleetCall } from './call.ts';
import { SLEEP_MS, type Fleet } from './fleet.ts';
import type { Isolate } from './isolates.ts';

/** A history that was made up to break a rule. Random ones find most of these in a hundred thousand, and some never. */
export interface FleetHistory {
  readonly settings: Partial<GroupSettings>;
  readonly run: (fleet: Fleet) => void;
}

const TTL_MS = 45_000;
const EVER_MS = 1e9;

/** A limit up to which there is no margin, and one with. */
const MEMBERS = {
  slotsMax: Infinity,
  timeoutMs: 240_000,
  members: [someMember('m0', { slotsMax: 2 }), someMember('m1', { slotsMax: 1 })],
} as const;
const EXACT = { slotsMax: 1, timeoutMs: 240_000 } as const;
const WIDE = { slotsMax: 16, timeoutMs: 240_000 } as const;

/** The slots that may still be handed out unwritten. */
function roomOf({ state }: Fleet): number {
  const { confirmed } = state.bound;
  assert.ok(confirmed !== null);
  return confirmed.mark - confirmed.held - confirmed.granted;
}

/** Lets so many calls arrive, one after the other. */
function arriveAll(fleet: Fleet, count: number): FleetCall[] {
  return Array.from({ length: count }, () => fleet.arrive(1, true));
}

/** Takes all that the mark leaves and one more, while no write lands; then the instance is replaced, and goes on. */
function overfill(fleet: Fleet): void {
  fleet.foretellWrite({ landMs: null });
  for (let left = roomOf(fleet); left >= 0; left -= 1) {
    fleet.arrive(1, true);
    fleet.advance(2);
  }
  fleet.reset('goes_on', 0);
}

/** Cuts a call off: it hears nothing, and nobody hears it. */
function cutOff(fleet: Fleet, call: FleetCall, ms = EVER_MS): void {
  call.cutUntil = fleet.clock.now + ms;
}

/** Ends a call, and loses the answer to its release. */
function endUnheard(fleet: Fleet, call: FleetCall): void {
  fleet.network.foretell('release', { lost: 'answer' });
  fleet.holders.finish(call, 'success');
  fleet.advance(0);
}

/** Lets slots change hands until the next waiters are on disk as heirs, and answers lists nobody; tells who waits. */
function withNextHolders(fleet: Fleet): readonly [first: FleetCall, ...rest: FleetCall[]] {
  const calls = arriveAll(fleet, 8);
  fleet.advance(2);
  for (const call of calls.slice(0, 2)) {
    fleet.holders.finish(call, 'success');
    fleet.advance(2);
  }
  const [first, ...rest] = calls.slice(2);
  assert.ok(first !== undefined && first.phase === 'running');
  return [first, ...rest];
}

/**
 * A release is heard, its answer is lost, and the slot is granted on behind a write. The release comes once more
 * after a reset.
 */
export const RELEASED_TWICE: FleetHistory = {
  settings: EXACT,
  run: (fleet) => {
    const first = fleet.arrive(1, true);
    const second = fleet.arrive(1, true);
    endUnheard(fleet, first);
    fleet.advance(10);
    assert.equal(second.phase, 'running');
    cutOff(fleet, second, 20_000);
    fleet.reset('dies');
    fleet.arrive(1, true);
    fleet.advance(10_000);
  },
};

/** A release is heard after the last write, and comes once more after a reset, with all that the mark covers in use. */
export const ENDED_SINCE_THE_WRITE: FleetHistory = {
  settings: WIDE,
  run: (fleet) => {
    const [first] = arriveAll(fleet, 8);
    fleet.advance(100);
    assert.ok(first !== undefined);
    endUnheard(fleet, first);
    overfill(fleet);
    fleet.advance(4_500);
  },
};

/** The same, where the release is heard while the write is on its way. */
export const ENDED_WHILE_WRITING: FleetHistory = {
  settings: WIDE,
  run: (fleet) => {
    const [first] = arriveAll(fleet, 8);
    fleet.advance(100);
    fleet.foretellWrite({ hearMs: 500 });
    fleet.learn();
    fleet.advance(100);
    assert.ok(first !== undefined);
    endUnheard(fleet, first);
    fleet.advance(600);
    overfill(fleet);
    fleet.advance(4_000);
  },
};

/** More is asked for than the mark covers, while a write with a higher one is on its way. */
export const ABOVE_THE_MARK: FleetHistory = {
  settings: WIDE,
  run: (fleet) => {
    arriveAll(fleet, 8);
    fleet.advance(100);
    overfill(fleet);
  },
};

/** A replaced instance with room below its mark sleeps while the group fills up, and then receives a call. */
export const ASLEEP_WITH_ROOM: FleetHistory = {
  settings: WIDE,
  run: (fleet) => {
    arriveAll(fleet, 8);
    fleet.advance(100);
    assert.ok(roomOf(fleet) > 0);
    const older = fleet.current;
    fleet.reset('sleeps');
    fleet.advance(SLEEP_MS);
    arriveAll(fleet, 8);
    fleet.advance(1_000);
    assert.equal(fleet.in('running').length, 16);
    assert.ok(older.isAlive, 'the older instance has ended');
    fleet.network.foretell('ask', { isStale: true });
    const late = fleet.arrive(1, true);
    fleet.advance(1_000);
    assert.equal(late.phase, 'asking');
    assert.ok(!older.isAlive, 'the older instance goes on');
  },
};

/** A write is confirmed as late as may be, and an instance that was replaced meanwhile is asked after that. */
export const CONFIRMED_LATE: FleetHistory = {
  settings: WIDE,
  run: (fleet) => {
    fleet.foretellWrite({ hearMs: 4_900 });
    fleet.arrive(1, true);
    fleet.reset('goes_on');
    fleet.advance(6_000);
    fleet.network.foretell('ask', { isStale: true });
    const late = fleet.arrive(1, true);
    cutOff(fleet, late, TTL_MS);
    fleet.advance(TTL_MS);
  },
};

/**
 * A grant is heard so late that its holder does not know that its slot has lapsed, of which nobody knew whose it was. It has
 * been granted on when the holder comes, after another reset.
 */
export const LAPSED_UNKNOWN: FleetHistory = {
  settings: EXACT,
  run: (fleet) => {
    fleet.network.foretell('ask', { answerMs: 6_900 });
    const late = fleet.arrive(1, false);
    fleet.reset('goes_on');
    fleet.advance(6_900);
    assert.equal(late.phase, 'running');
    cutOff(fleet, late);
    const next = fleet.arrive(1, true);
    fleet.advance(TTL_MS - 6_900 + 10);
    assert.equal(next.phase, 'running');
    cutOff(fleet, next, 20_000);
    fleet.reset('dies_silently');
    late.cutUntil = 0;
    fleet.holders.resume(late);
    fleet.advance(1_000);
  },
};

/** A holder has come to the newest instance, and the older one, which dropped its lease then, says that it is gone. */
export const GONE_AT_THE_OLDER: FleetHistory = {
  settings: WIDE,
  run: (fleet) => {
    const [call] = arriveAll(fleet, 2);
    assert.ok(call !== undefined);
    fleet.advance(10);
    fleet.reset('goes_on');
    // The answer to the first try comes when the second is under way to the older one.
    fleet.network.foretell('resume', { answerMs: 3_400 });
    fleet.network.foretell('resume', { requestMs: 500, isStale: true });
    fleet.holders.resume(call);
    fleet.advance(10_000);
    assert.equal(call.phase, 'running', 'a holder that lives is stopped');
  },
};

/**
 * Resets in a row, the second of which comes late in the time of the first. The holder came to the first and not to
 * the second.
 */
export const RESETS_IN_A_ROW: FleetHistory = {
  settings: EXACT,
  run: (fleet) => {
    const call = fleet.arrive(1, true);
    fleet.advance(1_000);
    fleet.reset('dies');
    fleet.advance(39_000);
    cutOff(fleet, call, TTL_MS);
    fleet.reset('dies');
    fleet.arrive(1, true);
    fleet.advance(TTL_MS);
  },
};

/** A holder comes back long after its lease has lapsed, of which nothing is stored any more. */
export const BACK_AFTER_A_TTL: FleetHistory = {
  settings: EXACT,
  run: (fleet) => {
    const lapsed = fleet.arrive(1, false);
    cutOff(fleet, lapsed);
    const next = fleet.arrive(1, true);
    fleet.advance(TTL_MS + 40_000);
    assert.equal(next.phase, 'running');
    cutOff(fleet, next, 20_000);
    fleet.reset('dies_silently');
    lapsed.cutUntil = 0;
    fleet.holders.resume(lapsed);
    fleet.advance(1_000);
  },
};

/** An instance that was replaced is left alone with its holder, which renews there. */
export const LEFT_ALONE: FleetHistory = {
  settings: EXACT,
  run: (fleet) => {
    fleet.arrive(1, true);
    fleet.advance(1_000);
    fleet.reset('goes_on');
    fleet.advance(TTL_MS + 1);
  },
};

/** The same; it writes all the time, and never hears of it. */
export const WRITES_IN_VAIN: FleetHistory = {
  settings: EXACT,
  run: (fleet) => {
    fleet.arrive(1, true);
    fleet.advance(1_000);
    const older = fleet.current;
    fleet.reset('goes_on');
    for (const ms of [9_000, 15_000, 15_000, 8_000]) {
      fleet.advance(ms);
      fleet.foretellWrite({ landMs: null });
      older.apply({ kind: 'relearn' });
      fleet.advance(100);
    }
  },
};

/** A holder has come to the newest instance, and its next try to resume reaches the older one. */
export const RESUMED_AT_THE_OLDER: FleetHistory = {
  settings: EXACT,
  run: (fleet) => {
    const call = fleet.arrive(1, true);
    fleet.reset('goes_on');
    fleet.network.foretell('detach', { lost: 'request' });
    fleet.holders.resume(call);
    fleet.advance(10);
    fleet.network.foretell('resume', { isStale: true });
    fleet.holders.resume(call);
    fleet.advance(10);
  },
};

/** A holder of a saturated group goes to the newest instance; to the older one its connection broke. */
export const LOST_AT_THE_OLDER: FleetHistory = {
  settings: WIDE,
  run: (fleet) => {
    const [first] = arriveAll(fleet, 20);
    fleet.advance(10);
    assert.ok(first !== undefined);
    fleet.reset('goes_on');
    fleet.holders.resume(first);
    fleet.advance(10);
  },
};

/** The same, where its lease lapses there. */
export const LAPSED_AT_THE_OLDER: FleetHistory = {
  settings: WIDE,
  run: (fleet) => {
    const [first] = arriveAll(fleet, 16);
    assert.ok(first !== undefined);
    // Of the second round of renewals the first one is lost.
    for (let index = 0; index < 16; index += 1) fleet.network.foretell('renew', {});
    fleet.network.foretell('renew', { lost: 'request' });
    fleet.advance(16_100);
    cutOff(fleet, first, 29_350);
    fleet.advance(29_100);
    fleet.learn();
    fleet.advance(100);
    arriveAll(fleet, 4);
    fleet.network.foretell('detach', { lost: 'request' });
    fleet.reset('goes_on');
    fleet.advance(200);
    assert.equal(first.phase, 'running');
    fleet.holders.resume(first);
    fleet.advance(1_000);
  },
};

/** One reset after the other: the mark covers what is held, and does not rise. */
export const MANY_RESETS: FleetHistory = {
  settings: WIDE,
  run: (fleet) => {
    arriveAll(fleet, 8);
    fleet.advance(100);
    const { mark } = fleet.disk;
    for (let index = 0; index < 10; index += 1) {
      fleet.reset('dies_silently');
      fleet.advance(100);
    }
    assert.ok(fleet.disk.mark <= mark, `the mark has risen from ${mark} to ${fleet.disk.mark}`);
  },
};

/** An operator takes a lease away, and its holder hears of it only after a reset. */
export const REVOKED: FleetHistory = {
  settings: EXACT,
  run: (fleet) => {
    const call = fleet.arrive(1, true);
    fleet.advance(1_500);
    cutOff(fleet, call, 2_000);
    fleet.revoke(call);
    fleet.learn();
    fleet.advance(100);
    fleet.reset('dies_silently');
    fleet.advance(2_000);
    fleet.holders.resume(call);
    fleet.advance(10);
    assert.equal(call.phase, 'over', 'a lease that was revoked is taken up again');
  },
};

/**
 * A release is heard, its answer is lost, and the slot has gone to an heir unwritten. The release comes once more after a
 * reset.
 */
export const PASSED_AND_RELEASED_TWICE: FleetHistory = {
  settings: EXACT,
  run: (fleet) => {
    const [first, nextHolder] = withNextHolders(fleet);
    fleet.foretellWrite({ landMs: null });
    endUnheard(fleet, first);
    assert.equal(nextHolder?.phase, 'running', 'the slot waits for a write');
    cutOff(fleet, nextHolder, 20_000);
    fleet.reset('dies', 0);
    fleet.arrive(1, true);
    fleet.advance(10_000);
  },
};

/** The same where the older instance lives, and an heir that is parked there asks on at the newest one. */
export const PASSED_AT_THE_OLDER: FleetHistory = {
  settings: EXACT,
  run: (fleet) => {
    const [first, nextHolder, ...others] = withNextHolders(fleet);
    assert.ok(nextHolder !== undefined);
    fleet.reset('goes_on', 0);
    for (const call of others) fleet.holders.leave(call);
    fleet.holders.ask(nextHolder);
    fleet.advance(1);
    endUnheard(fleet, first);
    assert.equal(nextHolder.phase, 'running', 'the slot waits for a write');
    // The release comes to the newest instance once nobody is parked there for the heir any more.
    cutOff(fleet, nextHolder, 20_000);
    cutOff(fleet, first, 12_000);
    fleet.arrive(1, true);
    fleet.advance(15_000);
  },
};

/** A holder has come to the newest instance, and the older one hears that its call has ended. */
export const RESUMED_AND_RELEASED_AT_THE_OLDER: FleetHistory = {
  settings: EXACT,
  run: (fleet) => {
    const [first] = withNextHolders(fleet);
    fleet.reset('goes_on', 0);
    fleet.network.foretell('resume', { answerMs: 500 });
    fleet.holders.resume(first);
    fleet.advance(10);
    fleet.holders.finish(first, 'success');
    fleet.advance(10);
  },
};

/** The connection of a holder breaks, which lives at the newest instance, and waiters are heirs at the older one. */
export const LOST_BESIDE_NEXT_HOLDERS: FleetHistory = {
  settings: EXACT,
  run: (fleet) => {
    const [first] = withNextHolders(fleet);
    fleet.reset('goes_on', 0);
    fleet.holders.resume(first);
    fleet.advance(10);
  },
};

/**
 * A lease whose answer left behind the last write ends, and its slot goes on. After a reset an old ask for it comes
 * once more.
 */
export const ASKED_AGAIN_AFTER_ITS_END: FleetHistory = {
  settings: EXACT,
  run: (fleet) => {
    const [before, first, nextHolder] = arriveAll(fleet, 4);
    assert.ok(before !== undefined && first !== undefined && nextHolder !== undefined);
    fleet.advance(10);
    // Of the write that the answer to the first one leaves behind nothing more is heard.
    fleet.network.foretell('ask', {});
    fleet.holders.finish(before, 'success');
    fleet.advance(0);
    assert.equal(first.phase, 'running');
    fleet.foretellWrite({ landMs: null });
    fleet.foretellWrite({ landMs: null });
    fleet.holders.finish(first, 'success');
    fleet.advance(0);
    if (nextHolder.phase === 'running') cutOff(fleet, nextHolder, 20_000);
    fleet.reset('goes_on', 0);
    fleet.network.echo(2, EVER_MS, false);
    fleet.advance(100);
  },
};

/** A limit of which slots are lent, and the first isolate. */
const PREFETCHING = { slotsMax: 8, isAdaptive: false, timeoutMs: 240_000 } as const;

function isolateOf({ isolates }: Fleet): Isolate {
  const [isolate] = isolates.all;
  assert.ok(isolate !== undefined);
  return isolate;
}

/** Has all slots taken by calls that nobody hears of from then on. */
function fill(fleet: Fleet): void {
  const calls = arriveAll(fleet, PREFETCHING.slotsMax);
  fleet.advance(100);
  for (const call of calls) cutOff(fleet, call);
}

/** Nobody keeps a loan any more, and its isolate has not noticed. Its slots are handed on, and it starts a call. */
export const PREFETCHED_LONG_AGO: FleetHistory = {
  settings: PREFETCHING,
  run: (fleet) => {
    const isolate = isolateOf(fleet);
    const call = fleet.callIn(isolate, true);
    fleet.isolates.loseKeeper(isolate, true);
    fleet.finish(call, 'success');
    fleet.advance(5_100);
    fill(fleet);
    fleet.callIn(isolate, true);
  },
};

/** A slot is given back, the answer is lost, and it is granted on. It is given back once more after a reset. */
export const GIVEN_BACK_TWICE: FleetHistory = {
  settings: PREFETCHING,
  run: (fleet) => {
    fleet.callIn(isolateOf(fleet), true);
    fleet.network.foretell('give_back', { lost: 'answer' });
    fleet.advance(600);
    fill(fleet);
    fleet.reset('dies_silently');
    fleet.advance(4_000);
  },
};

/** A call asks for a lease of its own, and its message comes after its loan has lapsed and the slot was handed on. */
export const OWN_LEASE_TOO_LATE: FleetHistory = {
  settings: PREFETCHING,
  run: (fleet) => {
    const isolate = isolateOf(fleet);
    // One asks and brings the slot, the other one runs on it.
    fleet.callIn(isolate, true);
    fleet.callIn(isolate, true);
    // It is told once more, and that is lost.
    fleet.network.foretell('resume', { requestMs: 7_000 });
    fleet.network.foretell('resume', { lost: 'request' });
    fleet.network.foretell('resume', { lost: 'request' });
    fleet.isolates.loseKeeper(isolate, true);
    fleet.advance(5_200);
    fill(fleet);
    fleet.reset('dies_silently');
    fleet.advance(4_000);
  },
};

/** More is lent than the mark leaves, while no write lands. */
export const PREFETCHED_ABOVE_THE_MARK: FleetHistory = {
  settings: { ...PREFETCHING, slotsMax: 64 },
  run: (fleet) => {
    arriveAll(fleet, 2);
    fleet.advance(2);
    fleet.foretellWrite({ landMs: null });
    fleet.callIn(isolateOf(fleet), true);
    fleet.advance(2);
  },
};

/** A call on a lent slot goes to the newest instance. In the older one, which is full, its loan lapses. */
export const PREFETCH_LAPSED_AT_THE_OLDER: FleetHistory = {
  settings: { ...WIDE, isAdaptive: false },
  run: (fleet) => {
    const isolate = isolateOf(fleet);
    fleet.callIn(isolate, true);
    const call = fleet.callIn(isolate, true);
    arriveAll(fleet, 18);
    fleet.advance(100);
    fleet.isolates.loseKeeper(isolate, true);
    fleet.network.foretell('resume', { lost: 'request' });
    fleet.network.foretell('resume', { lost: 'request' });
    fleet.advance(4_700);
    assert.equal(fleet.state.lending.slots, 1);
    fleet.learn();
    fleet.advance(100);
    fleet.reset('goes_on');
    fleet.resume(call);
    fleet.advance(1_000);
    assert.equal(call.phase, 'running');
  },
};

/** All that was lent is called back, and granted to others. Then a call comes in. */
export const CALLED_BACK: FleetHistory = {
  settings: PREFETCHING,
  run: (fleet) => {
    const isolate = isolateOf(fleet);
    fleet.callIn(isolate, true);
    fleet.finish(fleet.callIn(isolate, true), 'success');
    arriveAll(fleet, PREFETCHING.slotsMax);
    fleet.advance(100);
    assert.equal(fleet.state.lending.slots, 0);
    fleet.callIn(isolate, true);
  },
};

/** A call comes that has to wait, because slots are lent on which no call runs. */
export const WAITS_FOR_PREFETCHED_ONES: FleetHistory = {
  settings: { ...WIDE, isAdaptive: false },
  run: (fleet) => {
    fleet.callIn(isolateOf(fleet), true);
    const calls = arriveAll(fleet, WIDE.slotsMax - 1);
    fleet.advance(10);
    const waits = calls.some(({ phase }) => phase !== 'running');
    assert.ok(!waits, 'a call waits while slots are lent on which none runs');
  },
};

/** The answer is lost that brought an isolate more slots, and it goes on calling. */
export const PREFETCHED_TO_NOBODY: FleetHistory = {
  settings: { ...WIDE, isAdaptive: false },
  run: (fleet) => {
    const isolate = isolateOf(fleet);
    const calls = Array.from({ length: 4 }, () => fleet.callIn(isolate, true));
    const known = fleet.state.lending.slots;
    fleet.network.foretell('ask', { lost: 'answer' });
    fleet.callIn(isolate, true);
    assert.ok(fleet.state.lending.slots > known);
    for (const call of calls) fleet.finish(call, 'success');
    for (let ms = 0; ms < 15_000; ms += 100) {
      const call = fleet.callIn(isolate, true);
      fleet.advance(100);
      fleet.finish(call, 'success');
    }
    // Nothing of it is used by then.
    fleet.advance(1_000);
    assert.equal(fleet.state.lending.slots, 0, 'slots are lent to nobody');
  },
};

/** A loan is called back by an instance that was replaced, and a call that runs on it can be heard by none. */
export const CALLED_BACK_BY_THE_OLDER: FleetHistory = {
  settings: { ...PREFETCHING, slotsMax: 6 },
  run: (fleet) => {
    const isolate = isolateOf(fleet);
    const first = fleet.callIn(isolate, true);
    fleet.reset('goes_on', 0);
    cutOff(fleet, fleet.callIn(isolate, true), 60_000);
    fleet.finish(first, 'success');
    fleet.advance(TTL_MS);
  },
};

/** An answer that brings slots comes after their loan was called back, while a call runs that can be heard by none. */
export const PREFETCHED_TOO_LATE: FleetHistory = {
  settings: { ...PREFETCHING, slotsMax: 12 },
  run: (fleet) => {
    const isolate = isolateOf(fleet);
    const [, call] = Array.from({ length: 5 }, () => fleet.callIn(isolate, true));
    assert.ok(call !== undefined);
    cutOff(fleet, call, TTL_MS);
    for (let index = 0; index < 5; index += 1) fleet.callIn(isolate, true);
    isolate.cutUntil = fleet.clock.now + 2_000;
    fleet.advance(TTL_MS);
  },
};

/** Of two members each has a call; after a reset one of them is not heard of while others come. */
export const HELD_AT_EACH: FleetHistory = {
  settings: MEMBERS,
  run: (fleet) => {
    const [, second] = arriveAll(fleet, 2);
    fleet.advance(100);
    assert.ok(second?.member === 'm1');
    cutOff(fleet, second, 20_000);
    fleet.reset('dies_silently');
    arriveAll(fleet, 2);
    fleet.advance(10_000);
  },
};

/** The same, where all are heard of, and others come when nothing is unclaimed any more. */
export const CLAIMED_AT_EACH: FleetHistory = {
  settings: MEMBERS,
  run: (fleet) => {
    arriveAll(fleet, 2);
    fleet.advance(100);
    fleet.reset('dies_silently');
    fleet.advance(TTL_MS + 10_000);
    arriveAll(fleet, 2);
    fleet.advance(1_000);
  },
};

/** A call is granted once more at another member by an instance that does not know it, and its holder comes there. */
export const GRANTED_ELSEWHERE: FleetHistory = {
  settings: {
    ...MEMBERS,
    members: [0, 1].map((index) => someMember(`m${index}`, { slotsMax: 1 })),
  },
  run: (fleet) => {
    fleet.foretellWrite({ landMs: 1_500 });
    const [first, second] = arriveAll(fleet, 2);
    assert.ok(first !== undefined && second !== undefined);
    fleet.holders.leave(second);
    fleet.reset('goes_on', 1);
    fleet.reset('dies', 0);
    fleet.network.echo(fleet.calls.length, 10_000, false);
    fleet.advance(TTL_MS);
    arriveAll(fleet, 2);
    fleet.advance(10_000);
  },
};

/**
 * The slot of one member comes free while its only heir waits for the other member, where it belongs. An older instance
 * sees that one's holder go, who has come to the newest one.
 */
export const NEXT_HOLDER_AT_THE_OTHER: FleetHistory = {
  settings: {
    ...MEMBERS,
    members: [0, 1].map((index) => someMember(`m${index}`, { slotsMax: 1 })),
  },
  run: (fleet) => {
    const finishFirst = (): void => {
      const call = fleet.in('running').find(({ member }) => member === 'm0');
      assert.ok(call !== undefined);
      fleet.holders.finish(call, 'success');
    };
    const calls = arriveAll(fleet, 8);
    fleet.advance(2);
    // Of one agent run.
    const [second, nextHolder] = [calls[1], calls[7]];
    assert.ok(second?.member === 'm1' && nextHolder !== undefined);
    while (fleet.in('asking').length > 1) {
      finishFirst();
      fleet.advance(2);
    }
    assert.deepEqual(fleet.in('asking'), [nextHolder]);
    fleet.learn();
    fleet.advance(100);
    fleet.reset('goes_on', 0);
    finishFirst();
    fleet.advance(1);
    assert.equal(nextHolder.phase, 'asking', 'it does not wait for its own');
    fleet.holders.resume(second);
    fleet.advance(1);
    assert.equal(second.phase, 'running');
    fleet.advance(10_000);
  },
};
