import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Limiter } from '../../../src/core/limiter.ts';
import { SCOPES_MAX } from '../../../src/core/parts/scope-lessons.ts';
import { instant, memberId } from '../../../src/core/words/ids.ts';
import type { RefusalScope } from '../../../src/core/words/scope.ts';
import { SERVED, type UpstreamSignal } from '../../../src/core/words/signal.ts';
import type { GroupState } from '../../../src/core/state.ts';
import type { Lane } from '../../../src/core/words/ticket.ts';
import { nextWakeAt } from '../../../src/core/step.ts';
import { someMember, someSettings, START, TestGroup } from '../../support/core-builders.ts';
import { NaiveScopes, RULES, type NaiveCall, type ScopeRules } from './naive-scopes.ts';

/** Names of a call, as its body and its key say. */
interface Names {
  readonly model: string | null;
  readonly tier: string | null;
  readonly credential: string | null;
}

export interface ScopeSettings {
  /** Null: the group names no members. */
  readonly members: number | null;
  readonly slotsMax: number;
  readonly isAdaptive: boolean;
}

/** Something that happens. `pick` chooses among the leases, the oldest first. */
export type ScopeAction =
  | {
      readonly kind: 'ask';
      readonly caller: string;
      readonly names: Names;
      readonly isUnread: boolean;
      readonly lane: Lane;
      readonly slots: number;
      readonly ageMs: number;
      readonly wait: boolean;
      readonly patienceMs: number | null;
    }
  | {
      readonly kind: 'report';
      readonly pick: number;
      readonly signal: Pick<UpstreamSignal, 'kind' | 'retryAfterMs' | 'slotsMax'>;
      readonly scope: RefusalScope | null;
      readonly isRepeat: boolean;
      readonly isEnd: boolean;
    }
  | { readonly kind: 'end'; readonly pick: number; readonly isSuccess: boolean }
  | { readonly kind: 'reconfigure'; readonly slotsMax: number; readonly isAdaptive: boolean }
  /** A member has another id, with the same key. */
  | { readonly kind: 'rename'; readonly pick: number }
  | { readonly kind: 'relearn' | 'reset' }
  /** A caller makes up names, and each call with one is refused. */
  | {
      readonly kind: 'crowd';
      readonly caller: string;
      readonly of: keyof Names;
      readonly times: number;
      readonly signal: Pick<UpstreamSignal, 'kind' | 'retryAfterMs' | 'slotsMax'>;
    }
  | { readonly kind: 'advance'; readonly ms: number };

const EVER_MS = 1e9;

/** How often holders renew their leases at least. */
const RENEW_MS = 40_000;

/** From so many successful calls on a group foresees waits. */
const FORESEEN_FROM = 10;

/** The core beside the naive group. After every step both must have decided and learned the same. */
export class ScopesWorld {
  readonly seen = { granted: 0, unread: 0, overtook: 0, rejected: 0, narrower: 0, resumed: 0 };
  readonly #naive: NaiveScopes;
  readonly #names = new Map<string, Names>();
  readonly #spoil: (state: GroupState) => void;
  #group: TestGroup;
  #asked = 0;
  #successes = 0;

  /** @param spoil changes the state of the core between steps, which must be noticed */
  constructor(
    { members, slotsMax, isAdaptive }: ScopeSettings,
    rules: ScopeRules = RULES,
    spoil: (state: GroupState) => void = () => {},
  ) {
    this.#spoil = spoil;
    const ids = Array.from({ length: members ?? 0 }, (_, index) => `m${index}`);
    const patient = { timeoutMs: EVER_MS, queueLengthMax: 1_000, ageCreditMs: 0 };
    const limits = { slotsMax, isAdaptive };
    this.#group = TestGroup.stored({
      ...someSettings(),
      ...patient,
      ...(members === null ? limits : { slotsMax: Infinity }),
      laneShares: { high: 0, normal: 0, low: 0 },
      affinity: { by: 'none', forMs: 0, waitMs: 0 },
      members: ids.map((id) => someMember(id, limits)),
    });
    const places = members === null ? [''] : ids;
    this.#naive = new NaiveScopes(
      places.map((id) => ({ id, slotsMax })),
      START,
      rules,
    );
    this.#naive.reconfigure(slotsMax, isAdaptive, START);
    this.run({ kind: 'relearn' });
  }

  get #now(): number {
    return this.#group.now;
  }

  run(action: ScopeAction): void {
    switch (action.kind) {
      case 'ask':
        return this.#ask(action);
      case 'report': {
        const name = this.#picked(action.pick);
        if (name !== undefined) this.#report(name, action);
        if (name !== undefined && action.isEnd) this.#end(name, false);
        return;
      }
      case 'end': {
        const name = this.#picked(action.pick);
        return name === undefined ? undefined : this.#end(name, action.isSuccess);
      }
      case 'reconfigure': {
        const { slotsMax, isAdaptive } = action;
        const { members } = this.#group.state.settings;
        const limits = { slotsMax, isAdaptive };
        const changes =
          members.length === 0
            ? limits
            : { members: members.map((member) => ({ ...member, ...limits })) };
        const told = this.#group.reconfigure(changes);
        return this.#check(
          action.kind,
          told,
          this.#naive.reconfigure(slotsMax, isAdaptive, this.#now),
        );
      }
      case 'rename':
        return this.#rename(action.pick);
      case 'crowd':
        return this.#crowd(action);
      case 'relearn': {
        const told = this.#group.send({ kind: 'relearn' });
        return this.#check(action.kind, told, this.#naive.relearn(this.#now));
      }
      case 'reset':
        return this.#reset();
      case 'advance':
        for (let leftMs = action.ms; leftMs > 0; leftMs -= RENEW_MS) {
          this.#advanceTo(this.#now + Math.min(leftMs, RENEW_MS));
        }
    }
  }

  #rename(pick: number): void {
    const { members } = this.#group.state.settings;
    const renamed = members[pick % members.length];
    if (renamed === undefined) return;
    const from = renamed.id;
    const id = memberId(from.startsWith('m') ? from.replace('m', 'n') : from.replace('n', 'm'));
    const told = this.#group.reconfigure({
      members: members.map((member) => (member === renamed ? { ...member, id } : member)),
    });
    this.#check('rename', told, this.#naive.rename(from, id, this.#now));
  }

  #crowd({ caller, of, times, signal }: Extract<ScopeAction, { kind: 'crowd' }>): void {
    const call = { lane: 'normal', slots: 1, ageMs: 0, wait: false, patienceMs: null } as const;
    for (let index = 0; index < times; index += 1) {
      const made = `${of}-${this.#asked}`;
      const names = { model: 'pro', tier: null, credential: null, [of]: made };
      this.#ask({ kind: 'ask', caller, names, isUnread: false, ...call });
      const name = this.#naive.leases.find((lease) => lease.names[of] === made)?.name;
      if (name === undefined) continue;
      const scope = of === 'credential' ? 'credential' : 'model';
      this.#report(name, { kind: 'report', pick: 0, signal, scope, isRepeat: false, isEnd: true });
      this.#end(name, false);
    }
  }

  #picked(pick: number): string | undefined {
    return this.#naive.leases[pick % this.#naive.leases.length]?.name;
  }

  #ask({ names, isUnread, ageMs, patienceMs, ...call }: Extract<ScopeAction, { kind: 'ask' }>) {
    const name = `t${this.#asked++}`;
    this.#names.set(name, names);
    const deadlineAt = patienceMs === null ? Infinity : this.#now + patienceMs;
    const enqueuedAt = this.#now - ageMs;
    const unread = { model: null, tier: null, credential: names.credential };
    const told = this.#askFor({
      ...call,
      name,
      names: isUnread ? { ...unread, isUnread } : { ...names, isUnread },
      enqueuedAt,
      deadlineAt: Math.min(deadlineAt, enqueuedAt + EVER_MS),
    });
    if (!told.includes(`unread ${name}`)) return;
    // Its caller reads the body and asks again.
    this.seen.unread += 1;
    this.#askFor({
      ...call,
      name,
      names: { ...names, isUnread: false },
      enqueuedAt,
      deadlineAt: Math.min(deadlineAt, enqueuedAt + EVER_MS),
    });
  }

  #askFor(call: NaiveCall): string[] {
    const { name, caller, names, lane, slots, wait, enqueuedAt, deadlineAt } = call;
    const { model, tier, credential, isUnread } = names;
    const told = this.#group.ask(name, {
      sliceMs: EVER_MS,
      tenant: 'somebody',
      caller,
      lane,
      slots,
      wait,
      enqueuedMs: enqueuedAt - START,
      deadlineMs: deadlineAt - START,
      names: {
        model,
        ...(tier !== null && { tier }),
        ...(credential !== null && { credential }),
        ...(isUnread && { isUnread }),
      },
    });
    this.#check(`ask ${name}`, told, this.#naive.ask(call, this.#now));
    return told;
  }

  #report(name: string, action: Extract<ScopeAction, { kind: 'report' }>): void {
    const { signal, scope, isRepeat } = action;
    const { model = null, tier = null } = this.#names.get(name) ?? {};
    const isRead = signal.kind !== 'served';
    const full: UpstreamSignal = {
      ...SERVED,
      ...signal,
      ...(scope !== null && { scope }),
      ...(isRead && { names: { model, tier } }),
    };
    const before = this.#decisive();
    const told = this.#group.report(name, full, isRepeat);
    // A served call moves a ceiling by fractions, which are not worth a row.
    const isDirty = signal.kind === 'served' || this.#group.state.isControlsDirty;
    assert.ok(isDirty || before === this.#decisive(), 'what was learned is not written');
    this.#check(`report ${name}`, told, this.#naive.report(name, full, isRepeat, this.#now));
  }

  #end(name: string, isSuccess: boolean): void {
    const isForeseen = this.#successes >= FORESEEN_FROM - 1;
    const isWell = isSuccess && !isForeseen;
    if (isWell) this.#successes += 1;
    const told = this.#group.release(name, isWell ? 'success' : 'failed');
    this.#check(`end ${name}`, told, this.#naive.end(name, isWell, this.#now));
  }

  /** Replaces the instance. Holders take their leases up again at once, and then waiting callers ask again. */
  #reset(): void {
    const { leases, waiters } = this.#naive;
    // What teaches nothing that is worth a row is in it too.
    this.#group.state.isControlsDirty = true;
    this.#successes = 0;
    this.#group = this.#group.restart();
    const { unclaimed, members, grantsFrom } = this.#group.state;
    const slots = new Map([...members.values()].map((each) => [String(each.id), each.unclaimed]));
    this.#naive.reset(slots, unclaimed.until, grantsFrom, this.#now);
    for (const lease of leases) {
      const { model, tier, credential, isUnread } = lease.names;
      const told = this.#group.resume(lease.name, {
        holder: {
          tenant: 'somebody',
          caller: lease.caller,
          agent: null,
          upstream: 'openai',
          model,
          ...(tier !== null && { tier }),
          ...(credential !== null && { credential }),
          ...(isUnread && { isUnread }),
        },
        lane: lease.lane,
        slots: lease.slots,
        heldMs: this.#now - lease.grantedAt,
        ...(lease.at !== '' && { member: memberId(lease.at) }),
      });
      this.seen.resumed += 1;
      this.#check(`resume ${lease.name}`, told, this.#naive.resume(lease, this.#now));
    }
    for (const call of waiters) {
      const { model, tier, credential } = this.#names.get(call.name) ?? call.names;
      const told = this.#askFor(call);
      if (!told.includes(`unread ${call.name}`)) continue;
      this.#askFor({ ...call, names: { model, tier, credential, isUnread: false } });
    }
  }

  #advanceTo(target: number): void {
    for (const { name } of this.#naive.leases) this.#group.renew(name);
    for (let due = this.#naive.dueAt(this.#now); due < target; due = this.#naive.dueAt(this.#now)) {
      const wakeAt = nextWakeAt(this.#group.state, this.#group.now);
      assert.ok(wakeAt > this.#now, 'the group would not sleep at all');
      const expected = this.#naive.tick(due);
      const isAwake = expected.length === 0 || wakeAt <= due;
      assert.ok(isAwake, `the group would sleep past ${expected.join()}`);
      this.#group.now = instant(due);
      this.#check('tick', this.#group.tick(), expected);
    }
    this.#group.now = instant(target);
    this.#check('tick', this.#group.tick(), this.#naive.tick(target));
  }

  /** Everything that was learned and decides who is held. */
  #decisive(): string {
    const members = [...this.#group.state.members.values()];
    return JSON.stringify(
      members.map(({ controls: { ceiling, pause, breaker, scopes } }) => [
        [ceiling.slots, pause.until, pause.openMs, breaker.phase, breaker.openUntil],
        scopes.about,
        scopes.narrower.map((each) => [
          each.scope,
          each.ceiling.slots,
          each.pause.until,
          each.breaker.phase,
        ]),
      ]),
    );
  }

  #check(what: string, told: readonly string[], expected: readonly string[]): void {
    this.#spoil(this.#group.state);
    const at = `at ${this.#now - START}, ${what}`;
    const isGrant = (answer: string): boolean => answer.startsWith('grant ');
    assert.deepEqual(told.toSorted(), expected.toSorted(), at);
    assert.deepEqual(told.filter(isGrant), expected.filter(isGrant), `${at}: in order`);
    for (const answer of told) {
      if (isGrant(answer)) this.seen.granted += 1;
      if (answer.startsWith('reject ')) this.seen.rejected += 1;
    }
    const { leases, queue, members } = this.#group.state;
    const waiting = [...queue.byTicket.keys()].toSorted();
    assert.deepEqual(waiting, this.#naive.waiters.map(({ name }) => name).toSorted(), at);
    for (const lease of this.#naive.leases) {
      assert.equal(leases.get(this.#group.lease(lease.name).id)?.member, lease.at, at);
    }
    for (const place of this.#naive.places) {
      const member = members.get(memberId(place.id));
      assert.ok(member !== undefined);
      const { about, narrower } = member.controls.scopes;
      assert.deepEqual(about, place.about, `${at}: what the lessons of ${place.id} are about`);
      assert.deepEqual(lessonsIn(member), lessonsOf(place.own), `${at}: lessons of all`);
      const scopes = place.narrower.map(({ scope }) => scope);
      assert.deepEqual(
        narrower.map(({ scope }) => scope),
        scopes,
        `${at}: scopes`,
      );
      for (const [index, each] of [...member.scopes.values()].entries()) {
        const known = place.narrower.find(({ scope }) => scopeOf(scope) === scopeOf(each.scope));
        assert.ok(known !== undefined, `${at}: scope ${index}`);
        assert.deepEqual(lessonsIn(each), lessonsOf(known), `${at}: lessons of a scope`);
      }
      assert.ok(narrower.length <= SCOPES_MAX);
      this.seen.narrower = Math.max(this.seen.narrower, narrower.length);
    }
    const [first] = this.#naive.waiters;
    const isOvertaken = told.some((answer) => isGrant(answer) && first !== undefined);
    if (isOvertaken) this.seen.overtook += 1;
  }
}

function scopeOf({ model, tier, credential }: Names): string {
  return JSON.stringify([model, tier, credential]);
}

type Known = Pick<Limiter['controls'], 'pause' | 'breaker' | 'ceiling'>;

function lessonsOf({ pause, breaker, ceiling }: Known): unknown {
  return { pause, breaker, ceiling };
}

function lessonsIn({ controls }: Limiter): unknown {
  return lessonsOf(controls);
}

const pick = fc.nat(30);
const kind = <Kind extends string>(name: Kind) => ({ kind: fc.constant(name) });

export const scopeSettingsArb: fc.Arbitrary<ScopeSettings> = fc.record({
  members: fc.constantFrom(null, null, 2, 3),
  slotsMax: fc.constantFrom(2, 3, 5, 8),
  isAdaptive: fc.boolean(),
});

const namesArb = fc.record({
  model: fc.constantFrom('pro', 'pro', 'flash', 'mini', null),
  tier: fc.constantFrom(null, null, null, 'flex'),
  credential: fc.constantFrom(null, null, 'k1', 'k2', 'k3'),
});

const reportArb = fc.record({
  ...kind('report'),
  pick,
  signal: fc.record({
    kind: fc.constantFrom<UpstreamSignal['kind'][]>(
      ...(['served', 'served', 'error', 'error', 'error', 'overload', 'overload'] as const),
      ...(['requests', 'requests', 'tokens', 'unknown', 'ramp', 'long_window'] as const),
      ...(['concurrency', 'concurrency', 'quota', 'never_fits', 'unauthorized'] as const),
    ),
    retryAfterMs: fc.constantFrom(null, null, 0, 500, 3_000, 20_000, 2_000_000, 20_000_000),
    slotsMax: fc.constantFrom(null, null, 1, 2),
  }),
  scope: fc.constantFrom<(RefusalScope | null)[]>(
    ...(['call', 'tier', 'model', 'model', 'credential', 'credential', 'upstream', null] as const),
  ),
  isRepeat: fc.nat(5).map((nat) => nat === 0),
  isEnd: fc.nat(4).map((nat) => nat > 0),
});

const scopeActionArb: fc.Arbitrary<ScopeAction> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      ...kind('ask'),
      caller: fc.constantFrom('one', 'two'),
      names: namesArb,
      isUnread: fc.nat(4).map((nat) => nat === 0),
      lane: fc.constantFrom<Lane>('high', 'normal', 'normal', 'low'),
      slots: fc.constantFrom(1, 1, 1, 1, 2),
      ageMs: fc.constantFrom(0, 0, 0, 10, 5_000),
      wait: fc.nat(7).map((nat) => nat > 0),
      patienceMs: fc.constantFrom(null, null, null, 1_000, 30_000),
    }),
  },
  { weight: 7, arbitrary: reportArb },
  { weight: 3, arbitrary: fc.record({ ...kind('end'), pick, isSuccess: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      ...kind('reconfigure'),
      slotsMax: fc.constantFrom(2, 3, 5, 8),
      isAdaptive: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ ...kind('rename'), pick }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'reset' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'relearn' as const }) },
  {
    weight: 5,
    arbitrary: fc.record({
      ...kind('advance'),
      ms: fc.oneof(
        { weight: 20, arbitrary: fc.constantFrom(1, 999, 1_000, 2_000, 20_000, 59_999, 60_001) },
        { weight: 20, arbitrary: fc.nat(10_000) },
        { weight: 2, arbitrary: fc.constant(600_000) },
        { weight: 1, arbitrary: fc.constant(4_000_000) },
      ),
    }),
  },
);

const crowdArb: fc.Arbitrary<ScopeAction> = fc.record({
  ...kind('crowd'),
  caller: fc.constantFrom('one', 'two', 'three'),
  of: fc.constantFrom<(keyof Names)[]>('model', 'tier', 'credential'),
  times: fc.constantFrom(5, 30, 66),
  signal: fc.constantFrom(
    { kind: 'requests', retryAfterMs: 20_000, slotsMax: null },
    { kind: 'requests', retryAfterMs: 600_000, slotsMax: null },
    { kind: 'error', retryAfterMs: null, slotsMax: null },
    { kind: 'concurrency', retryAfterMs: null, slotsMax: 1 },
  ),
});

/** Histories in which there are more scopes than are remembered. */
export const crowdedHistoryArb = fc.array(
  fc.oneof({ weight: 3, arbitrary: scopeActionArb }, { weight: 1, arbitrary: crowdArb }),
  { minLength: 6, maxLength: 18, size: 'max' },
);

export const scopeHistoryArb = fc.array(scopeActionArb, {
  minLength: 10,
  maxLength: 60,
  size: 'max',
});
