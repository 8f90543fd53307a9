import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { checkInvariants } from '../../../src/core/invariants.ts';
import { emptyState } from '../../../src/core/recover.ts';
import { nextWakeAt, step } from '../../../src/core/step.ts';
import type { GroupEvent } from '../../../src/core/events.ts';
import type { MemberSettings, GroupSettings } from '../../../src/core/words/settings.ts';
import { SERVED, type UpstreamSignal } from '../../../src/core/words/signal.ts';
import { instant, leaseIdOf, memberId, ticketId } from '../../../src/core/words/ids.ts';
import {
  SOMEBODY,
  someMember,
  someSettings,
  someTicket,
  START,
} from '../../support/core-builders.ts';
import { enough, runs } from '../runs.ts';
import { NaiveMembers, type NaiveBlame } from './naive-members.ts';

/**
 * Random histories of groups of none to five members against a naive one: after every step both have granted the same
 * calls at the same members, in the order of their arrival, and count what runs at the same ones.
 */

const IDS = ['m0', 'm1', 'm2', 'm3', 'm4'] as const;
const EVER_MS = 1e9;

/** How often holders renew their leases at least. */
const RENEW_MS = 20_000;

const memberArb = (id: string): fc.Arbitrary<MemberSettings> =>
  fc
    .record({
      slotsMax: fc.constantFrom(0, 1, 1, 2, 2, 3, 4, Infinity),
      weight: fc.constantFrom(1, 1, 1, 0.5, 3),
      tier: fc.constantFrom(1, 1, 1, 2),
      isEnabled: fc.nat(7).map((nat) => nat > 0),
    })
    .map((own) => someMember(id, { ...own, succeeds: id === 'm1' ? SOMEBODY.upstream : null }));

const settingsArb: fc.Arbitrary<GroupSettings> = fc
  .record({
    slotsMax: fc.constantFrom(2, 3, 5, Infinity, Infinity),
    names: fc.oneof(fc.shuffledSubarray([...IDS]), fc.shuffledSubarray([...IDS], { minLength: 2 })),
    all: fc.tuple(...IDS.map(memberArb)),
    affinity: fc.record({
      by: fc.constantFrom('agent' as const, 'agent' as const, 'caller' as const, 'none' as const),
      forMs: fc.constantFrom(5_000, 300_000),
      waitMs: fc.constantFrom(0, 500, 2_000, 20_000),
    }),
  })
  .map(({ slotsMax, names, all, affinity }) => {
    const members = names.map((name) => all.find(({ id }) => id === name) ?? someMember(name));
    const patient = { timeoutMs: EVER_MS, queueLengthMax: 1_000, ageCreditMs: 0 };
    return someSettings({ slotsMax, members, affinity, ...patient });
  });

/** An answer of the upstream to a call that runs. */
type MembersAnswer =
  | { readonly kind: 'mistaken' | 'refuse'; readonly pick: number }
  | { readonly kind: 'served'; readonly pick: number; readonly blamed: readonly NaiveBlame[] };

type MembersAction =
  | {
      readonly kind: 'ask';
      readonly agent: string | null;
      readonly caller: string;
      readonly slots: number;
      readonly excluded: readonly string[];
    }
  | { readonly kind: 'end' | 'bring_back'; readonly pick: number }
  | MembersAnswer
  | { readonly kind: 'reconfigure'; readonly settings: GroupSettings }
  | { readonly kind: 'advance'; readonly ms: number };

const pick = fc.nat(30);
const kind = <Kind extends string>(name: Kind) => ({ kind: fc.constant(name) });

const actionArb: fc.Arbitrary<MembersAction> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      ...kind('ask'),
      agent: fc.constantFrom(null, 'run-1', 'run-2'),
      caller: fc.constantFrom('ann', 'bob'),
      slots: fc.constantFrom(1, 1, 1, 1, 2, 3),
      excluded: fc.oneof(
        { weight: 3, arbitrary: fc.constant([]) },
        { weight: 1, arbitrary: fc.shuffledSubarray([...IDS]) },
      ),
    }),
  },
  { weight: 7, arbitrary: fc.record({ ...kind('end'), pick }) },
  { weight: 2, arbitrary: fc.record({ ...kind('refuse'), pick }) },
  { weight: 1, arbitrary: fc.record({ ...kind('mistaken'), pick }) },
  {
    weight: 3,
    arbitrary: fc.record({
      ...kind('served'),
      pick,
      blamed: fc.array(
        fc.record({
          member: fc.constantFrom(...IDS),
          agoMs: fc.oneof(fc.constant(0), fc.nat(100_000)),
        }),
        { maxLength: 3 },
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ ...kind('bring_back'), pick }) },
  { weight: 1, arbitrary: fc.record({ ...kind('reconfigure'), settings: settingsArb }) },
  {
    weight: 5,
    arbitrary: fc.record({
      ...kind('advance'),
      ms: fc.oneof(fc.constantFrom(1, 499, 500, 2_000, 5_000, 20_000, 60_000), fc.nat(10_000)),
    }),
  },
);

/** The core beside the naive group. */
class MembersWorld {
  readonly #state;
  readonly #naive: NaiveMembers;
  #now = START;
  #asked = 0;
  readonly seen = { granted: 0, left: 0, held: 0, out: 0, probed: 0 };

  constructor(settings: GroupSettings) {
    this.#state = emptyState(settings, 1);
    this.#naive = new NaiveMembers(settings);
  }

  run(action: MembersAction): void {
    const now = this.#now;
    const { members } = this.#naive.settings;
    switch (action.kind) {
      case 'ask': {
        const name = `t${this.#asked++}`;
        const { agent, caller, slots, excluded } = action;
        const call = { name, agent, caller, slots, excluded };
        const ticket = someTicket(name, now, {
          holder: { ...SOMEBODY, agent, caller },
          slots,
          excluded: excluded.map(memberId),
        });
        const ask = { ticket, leaseId: leaseIdOf(ticket.id, 1), sliceMs: EVER_MS };
        return this.#step({ kind: 'acquire', ...ask }, this.#naive.ask(call, now));
      }
      case 'end': {
        const { name } = this.#naive.leases[action.pick % this.#naive.leases.length] ?? {};
        if (name === undefined) return;
        const leaseId = leaseIdOf(ticketId(name), 1);
        const reported = { outcome: 'success', settlement: null } as const;
        return this.#step({ kind: 'release', leaseId, ...reported }, this.#naive.end(name, now));
      }
      case 'served':
      case 'mistaken':
      case 'refuse': {
        const { name } = this.#naive.leases[action.pick % this.#naive.leases.length] ?? {};
        if (name === undefined) return;
        const leaseId = leaseIdOf(ticketId(name), 1);
        const [signal, reported] = this.#answered(action, name);
        return this.#step({ kind: 'report', leaseId, signal, isRepeat: false }, reported);
      }
      case 'bring_back': {
        const { id } = members[action.pick % members.length] ?? {};
        if (id === undefined) return;
        return this.#step({ kind: 'bring_back', member: id }, this.#naive.bringBack(id, now));
      }
      case 'reconfigure': {
        const { settings } = action;
        return this.#step(
          { kind: 'reconfigure', settings },
          this.#naive.reconfigure(settings, now),
        );
      }
      case 'advance':
        for (let leftMs = action.ms; leftMs > 0; leftMs -= RENEW_MS) {
          this.#advanceTo(this.#now + Math.min(leftMs, RENEW_MS));
        }
        return;
    }
  }

  /** Finds what an upstream has said, and what the naive group does about it. */
  #answered(action: MembersAnswer, name: string): readonly [UpstreamSignal, readonly string[]] {
    const now = this.#now;
    switch (action.kind) {
      case 'served': {
        const blamed = action.blamed.map(({ member, agoMs }) => {
          return { member: memberId(member), kind: 'quota' as const, agoMs };
        });
        return [{ ...SERVED, blamed }, this.#naive.served(name, action.blamed, now)];
      }
      case 'mistaken':
        return [{ ...SERVED, isMistake: true }, this.#naive.tick(now)];
      case 'refuse':
        return [{ ...SERVED, kind: 'unauthorized' }, this.#naive.refuse(name, now)];
    }
  }

  #advanceTo(target: number): void {
    for (const { name } of this.#naive.leases) {
      step(this.#state, { kind: 'renew', leaseId: leaseIdOf(ticketId(name), 1) }, this.#now);
    }
    for (let due = this.#naive.dueAt(this.#now); due < target; due = this.#naive.dueAt(this.#now)) {
      const wakeAt = nextWakeAt(this.#state, this.#now);
      assert.ok(wakeAt > this.#now, 'the group would not sleep at all');
      this.#now = instant(due);
      const reported = this.#naive.tick(due);
      assert.ok(
        reported.length === 0 || wakeAt <= due,
        `the group would sleep too long: ${reported.join()} at ${due - START}, not ${wakeAt - START}`,
      );
      this.#step({ kind: 'tick' }, reported);
    }
    this.#now = instant(target);
    this.#step({ kind: 'tick' }, this.#naive.tick(target));
  }

  #step(event: GroupEvent, expected: readonly string[]): void {
    const reported: string[] = [];
    for (const effect of step(this.#state, event, this.#now)) {
      if (effect.kind === 'grant') {
        const { ticketId: name, member, decision } = effect.lease;
        reported.push(`grant ${name} at ${member}`);
        this.seen.granted += 1;
        if (decision?.placed?.by === 'left') this.seen.left += 1;
      } else if (effect.kind === 'reject') {
        reported.push(`reject ${effect.ticketId} ${effect.rejection.reason}`);
      }
    }
    assert.deepEqual(reported.toSorted(), expected, `at ${this.#now - START}, ${event.kind}`);
    assert.deepEqual(checkInvariants(this.#state, this.#now), []);
    for (const { controls } of this.#state.members.values()) {
      if (controls.outage.reason !== null) this.seen.out += 1;
      if (controls.outage.probe !== null) this.seen.probed += 1;
    }
    const { waiters, leases } = this.#naive;
    this.seen.held += waiters.filter(({ heldUntil }) => heldUntil !== null).length;
    const standing = [...this.#state.queue.byTicket.keys()];
    assert.deepEqual(
      standing,
      waiters.map(({ name }) => name),
    );
    for (const lease of leases) {
      const { member } = this.#state.leases.get(leaseIdOf(ticketId(lease.name), 1)) ?? {};
      assert.equal(member, this.#naive.countsAt(lease), `where ${lease.name} counts`);
    }
  }
}

test('calls go where the naive group says, in the order of their arrival', () => {
  const seen = { granted: 0, left: 0, held: 0, out: 0, probed: 0 };
  fc.assert(
    fc.property(
      settingsArb,
      fc.array(actionArb, { maxLength: 80, size: 'max' }),
      (settings, actions) => {
        const world = new MembersWorld(settings);
        for (const action of actions) world.run(action);
        for (const name of ['granted', 'left', 'held', 'out', 'probed'] as const) {
          seen[name] += world.seen[name];
        }
      },
    ),
    runs(1_500),
  );
  assert.ok(seen.granted > enough(8_000), `only ${seen.granted} are granted`);
  assert.ok(
    seen.left > enough(200) && seen.held > enough(300),
    `hardly any wait for their member: ${seen.held}`,
  );
  assert.ok(
    seen.out > enough(5_000) && seen.probed > enough(200),
    `hardly any are out: ${seen.out}, ${seen.probed}`,
  );
});
