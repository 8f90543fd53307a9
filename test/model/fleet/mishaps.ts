import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { LeaseOutcome } from '../../../src/core/words/outcome.ts';
import type { GroupSettings } from '../../../src/core/words/settings.ts';
import { SOMEBODY, someMember, someSettings } from '../../support/core-builders.ts';
import { stepMsArb } from '../actions.ts';
import type { FleetCall } from './call.ts';
import type { Fallen, Fleet } from './fleet.ts';
import type { WriteFate } from './instance.ts';
import type { Isolate } from './isolates.ts';
import type { Fate, MessageKind } from './network.ts';
import type { RefusalsRefused } from './refusals.ts';

/** Something that happens to a fleet. `pick` chooses among the calls it can happen to. */
export type Mishap =
  | {
      readonly kind: 'arrive';
      readonly count: number;
      readonly slots: number;
      readonly isStrict: boolean;
    }
  /** Calls of an isolate that is lent slots. */
  | {
      readonly kind: 'call_in';
      readonly isolate: number;
      readonly count: number;
      readonly isStrict: boolean;
    }
  /** The context ends that keeps an isolate's loan, or all of the isolate. */
  | {
      readonly kind: 'lose_keeper' | 'isolate_dies';
      readonly isolate: number;
      readonly isHeard: boolean;
    }
  | { readonly kind: 'cut_isolate'; readonly isolate: number; readonly ms: number }
  /** A call made for another one that runs. */
  | { readonly kind: 'nest'; readonly pick: number }
  /** A run of calls, one after the other, each of which ends soon. */
  | { readonly kind: 'rush'; readonly count: number; readonly pick: number }
  | { readonly kind: 'leave' | 'resume' | 'revoke'; readonly pick: number }
  | { readonly kind: 'refuse'; readonly pick: number; readonly about: RefusalsRefused }
  | { readonly kind: 'finish'; readonly pick: number; readonly outcome: LeaseOutcome }
  | { readonly kind: 'die'; readonly pick: number; readonly isHeard: boolean }
  /** A call hears nothing and is not heard for so long. */
  | { readonly kind: 'cut'; readonly pick: number; readonly ms: number }
  | { readonly kind: 'fate'; readonly of: MessageKind; readonly fate: Partial<Fate> }
  | { readonly kind: 'write_fate'; readonly fate: Partial<WriteFate> }
  /** A message of the last seconds is delivered once more. */
  | { readonly kind: 'echo'; readonly pick: number; readonly isStale: boolean }
  | {
      readonly kind: 'reset';
      readonly fallen: Fallen;
      readonly landed: number;
      readonly hearMs: number;
    }
  | { readonly kind: 'learn' | 'end_stale' }
  /** The group names no members from now on (`none`), all that it ever had, or all but one. */
  | { readonly kind: 'other_members'; readonly without: number | 'none' | null }
  | { readonly kind: 'advance' | 'freeze'; readonly ms: number };

/** How late a message may be that is delivered once more. */
const ECHO_MS = 10_000;

/** Lets a mishap happen, and all that is due at its instant. */
export function befall(fleet: Fleet, mishap: Mishap): void {
  const { holders } = fleet;
  const isolateOf = (index: number): Isolate => {
    const isolate = fleet.isolates.all[index];
    assert.ok(isolate !== undefined);
    return isolate;
  };
  const running = (pick: number, work: (call: FleetCall) => void): void => {
    const calls = fleet.in('running');
    const call = calls[pick % calls.length];
    if (call !== undefined) work(call);
  };
  switch (mishap.kind) {
    case 'arrive':
      for (let index = 0; index < mishap.count; index += 1) {
        fleet.arrive(mishap.slots, mishap.isStrict);
      }
      return;
    case 'rush':
      return rush(fleet, mishap.count, mishap.pick);
    case 'call_in':
      for (let index = 0; index < mishap.count; index += 1) {
        fleet.callIn(isolateOf(mishap.isolate), mishap.isStrict);
      }
      return;
    case 'lose_keeper':
      fleet.isolates.loseKeeper(isolateOf(mishap.isolate), mishap.isHeard);
      break;
    case 'other_members': {
      const { without } = mishap;
      const all = fleet.members;
      return fleet.reconfigure(
        without === 'none' ? [] : all.filter((_, index) => index !== without),
      );
    }
    case 'isolate_dies': {
      const isolate = isolateOf(mishap.isolate);
      fleet.isolates.die(isolate, mishap.isHeard, fleet.in('running'));
      break;
    }
    case 'cut_isolate':
      isolateOf(mishap.isolate).cutUntil = fleet.clock.now + mishap.ms;
      break;
    case 'nest':
      return running(mishap.pick, (call) => fleet.arrive(1, call.isStrict, call));
    case 'leave': {
      const calls = fleet.in('asking');
      const call = calls[mishap.pick % calls.length];
      if (call !== undefined) holders.leave(call);
      break;
    }
    case 'resume':
      running(mishap.pick, (call) => fleet.resume(call));
      break;
    case 'revoke':
      return running(mishap.pick, (call) => fleet.revoke(call));
    case 'refuse':
      return running(mishap.pick, (call) => fleet.refuse(call, mishap.about));
    case 'finish':
      running(mishap.pick, (call) => fleet.finish(call, mishap.outcome));
      break;
    case 'die':
      running(mishap.pick, (call) => holders.die(call, mishap.isHeard));
      break;
    case 'cut':
      running(mishap.pick, (call) => (call.cutUntil = fleet.clock.now + mishap.ms));
      break;
    case 'fate':
      fleet.network.foretell(mishap.of, mishap.fate);
      break;
    case 'write_fate':
      fleet.foretellWrite(mishap.fate);
      break;
    case 'echo':
      fleet.network.echo(mishap.pick, ECHO_MS, mishap.isStale);
      break;
    case 'reset':
      return fleet.reset(mishap.fallen, mishap.landed, mishap.hearMs);
    case 'learn':
      return fleet.learn();
    case 'end_stale':
      return fleet.endStale();
    case 'advance':
      return fleet.advance(mishap.ms);
    case 'freeze':
      return fleet.freeze(mishap.ms);
  }
  fleet.advance(0);
}

/** Lets calls come and go in a full group, so quickly that slots change hands unwritten. */
function rush(fleet: Fleet, count: number, pick: number): void {
  for (let index = 0; index < count; index += 1) fleet.arrive(1, true);
  for (let index = 0; index < count; index += 1) {
    const calls = fleet.in('running');
    const call = calls[(pick + index) % calls.length];
    if (call !== undefined) fleet.holders.finish(call, 'success');
    fleet.advance(2);
  }
}

const pick = fc.nat(40);
const outcome = fc.constantFrom<LeaseOutcome>('success', 'cancelled', 'failed', 'unused');
const lateMs = fc.constantFrom(0, 0, 1, 20, 400, 1_900, 2_900, 3_100, 7_000, 9_900);
const kinds = ['ask', 'renew', 'resume', 'release', 'release_by_id', 'detach'] as const;
const prefetchKinds = [...kinds, 'keep_loan', 'keep_loan', 'give_back', 'give_back'] as const;

const fateArb: fc.Arbitrary<Partial<Fate>> = fc.record({
  requestMs: lateMs,
  answerMs: lateMs,
  lost: fc.constantFrom('no', 'no', 'no', 'request', 'answer', 'answer'),
  againMs: fc.constantFrom(null, null, null, 0, 300, 2_000, 9_000),
  isStale: fc.nat(2).map((nat) => nat === 0),
});

function kindOf<Kind extends Mishap['kind']>(kind: Kind): { readonly kind: fc.Arbitrary<Kind> } {
  return { kind: fc.constant(kind) };
}

/** Refusals of calls like one that runs. */
export const refusalArb: fc.Arbitrary<Mishap> = fc.record({
  ...kindOf('refuse'),
  pick,
  about: fc.constantFrom<RefusalsRefused>('model', 'tier', 'credential'),
});

/**
 * Makes mishaps.
 *
 * @param isStrict all holders stop at their fence
 * @param isWide calls come in crowds
 */
export function mishapArb(
  isStrict: boolean,
  isWide: boolean,
  hasPrefetches = false,
): fc.Arbitrary<Mishap> {
  const strict = isStrict ? fc.constant(true) : fc.boolean();
  const count = isWide ? fc.constantFrom(1, 2, 5, 12) : fc.constantFrom(1, 1, 2);
  const slots = fc.constantFrom(1, 1, 1, 2);
  const arbitraries: [number, fc.Arbitrary<Mishap>][] = [
    [7, fc.record({ ...kindOf('arrive'), count, slots, isStrict: strict })],
    [2, fc.record({ ...kindOf('rush'), pick, count: fc.constantFrom(2, 4, 9) })],
    [1, fc.record({ ...kindOf('nest'), pick })],
    [1, fc.record({ ...kindOf('leave'), pick })],
    [1, fc.record({ ...kindOf('resume'), pick })],
    [1, fc.record({ ...kindOf('revoke'), pick })],
    [1, refusalArb],
    [isWide ? 10 : 6, fc.record({ ...kindOf('finish'), pick, outcome })],
    [2, fc.record({ ...kindOf('die'), pick, isHeard: fc.nat(3).map((nat) => nat > 0) })],
    [2, fc.record({ ...kindOf('cut'), pick, ms: fc.constantFrom(2_000, 20_000, 44_000, 60_000) })],
    [
      6,
      fc.record({
        ...kindOf('fate'),
        of: fc.constantFrom(...(hasPrefetches ? prefetchKinds : kinds)),
        fate: fateArb,
      }),
    ],
    [
      3,
      fc.record({
        ...kindOf('write_fate'),
        fate: fc.record({
          landMs: fc.constantFrom(0, 1, 30, 1_500, 4_900, null),
          hearMs: fc.constantFrom(0, 0, 1, 60, 1_900, 4_900),
        }),
      }),
    ],
    [3, fc.record({ ...kindOf('echo'), pick, isStale: fc.boolean() })],
    [
      4,
      fc.record({
        ...kindOf('reset'),
        fallen: fc.constantFrom<Fallen>('dies', 'dies_silently', 'goes_on', 'goes_on', 'goes_on'),
        landed: fc.nat(2),
        hearMs: fc.constantFrom(0, 0, 500, 4_000),
      }),
    ],
    [1, fc.record({ ...kindOf('learn') })],
    [1, fc.record({ ...kindOf('end_stale') })],
    [10, fc.record({ ...kindOf('advance'), ms: stepMsArb })],
    [1, fc.record({ ...kindOf('freeze'), ms: stepMsArb })],
  ];
  if (hasPrefetches) arbitraries.push(...prefetchArbs(strict));
  return fc.oneof(...arbitraries.map(([weight, arbitrary]) => ({ weight, arbitrary })));
}

/**
 * Makes mishaps of a group of members, which are others from time to time.
 *
 * @param hasPrefetches there are isolates that would be lent slots, and are while it names none
 */
export function memberMishapArb(hasPrefetches = false): fc.Arbitrary<Mishap> {
  return fc.oneof(
    { weight: 40, arbitrary: mishapArb(true, false, hasPrefetches) },
    {
      weight: hasPrefetches ? 3 : 1,
      arbitrary: fc.record({
        ...kindOf('other_members'),
        without: fc.constantFrom<number | 'none' | null>('none', 0, 1, null, null),
      }),
    },
  );
}

/** Settings with one to five members, of which the first has the key of the upstream itself. */
export function memberSettingsArb(
  slots: fc.Arbitrary<number> = fc.constantFrom(1, 1, 2, 3, 10),
): fc.Arbitrary<GroupSettings> {
  const members = fc.array(slots, { minLength: 1, maxLength: 5 });
  const base = settingsArb(fc.constant(Infinity));
  return fc
    .record({ base, members, by: fc.constantFrom('agent' as const, 'none' as const) })
    .map(({ base: settings, members: limits, by }) => ({
      ...settings,
      affinity: { ...settings.affinity, by },
      members: limits.map((slotsMax, index) =>
        someMember(`m${index}`, { slotsMax, succeeds: index === 0 ? SOMEBODY.upstream : null }),
      ),
    }));
}

/** Mishaps of isolates that are lent slots. */
function prefetchArbs(strict: fc.Arbitrary<boolean>): [number, fc.Arbitrary<Mishap>][] {
  const isolate = fc.nat(1);
  const isHeard = fc.boolean();
  const count = fc.constantFrom(1, 1, 2, 5);
  const ms = fc.constantFrom(1_000, 2_000, 4_000, 20_000);
  return [
    [20, fc.record({ ...kindOf('call_in'), isolate, count, isStrict: strict })],
    [2, fc.record({ ...kindOf('lose_keeper'), isolate, isHeard })],
    [1, fc.record({ ...kindOf('isolate_dies'), isolate, isHeard })],
    [2, fc.record({ ...kindOf('cut_isolate'), isolate, ms })],
    [10, fc.record({ ...kindOf('advance'), ms: fc.constantFrom(1, 50, 300, 900, 1_100, 2_500) })],
  ];
}

const cooldownMs = fc.constantFrom(0, 0, 200, 5_000);

export function settingsArb(slotsMax: fc.Arbitrary<number>): fc.Arbitrary<GroupSettings> {
  return fc
    .record({
      slotsMax,
      releaseCooldownMs: cooldownMs,
      cancelCooldownMs: cooldownMs,
      failureCooldownMs: cooldownMs,
      timeoutMs: fc.constant(240_000),
      nested: fc.constantFrom<'pass' | 'reject'>('pass', 'reject'),
    })
    .map((settings) => someSettings(settings));
}
