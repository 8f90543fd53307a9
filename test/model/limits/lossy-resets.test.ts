import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { emptyControls } from '../../../src/core/member.ts';
import type { Effect, GroupEvent } from '../../../src/core/events.ts';
import { recover, emptyState, type Stored } from '../../../src/core/recover.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { step } from '../../../src/core/step.ts';
import { instant, leaseIdOf, type InstantMs } from '../../../src/core/words/ids.ts';
import type { RateSettings, GroupSettings } from '../../../src/core/words/settings.ts';
import type { Ticket, Reserved } from '../../../src/core/words/ticket.ts';
import { confirmWrite, takeWrite } from '../../../src/core/writes.ts';
import {
  nothingStored,
  SOMEBODY,
  someSettings,
  someTicket,
  START,
  UNMETERED,
} from '../../support/core-builders.ts';
import { enough, runs } from '../runs.ts';

/**
 * Limits across resets that lose everything that is not written. Calls tell beforehand at least what they
 * come to use, so nothing may ever be exceeded; and a reset may cost a block, not more.
 */

const MINUTE_MS = 60_000;
const TOKEN_PRICE = 0.01;

type LossyResetsAction =
  | { readonly kind: 'arrive'; readonly tokens: number }
  /** One of the calls ends, having used so much of what it said. */
  | { readonly kind: 'end'; readonly pick: number; readonly part: number }
  | { readonly kind: 'advance'; readonly ms: number }
  | { readonly kind: 'write' | 'reset' };

interface LossyResetsRunning {
  readonly ticket: Ticket;
  attachment: number;
  reserved: Reserved | null;
  readonly startedAt: number;
}

/** Amounts that calls have really taken. */
interface LossyResetsTaken {
  readonly at: number;
  readonly requests: number;
  tokens: number;
}

class LossyResetsWorld {
  now: InstantMs = START;
  readonly #settings: GroupSettings;
  #state: GroupState;
  #stored: Stored = nothingStored();
  #running: LossyResetsRunning[] = [];
  readonly taken: LossyResetsTaken[] = [];
  readonly #takenBy = new Map<string, LossyResetsTaken>();
  #spentUsd = 0;
  #arrivals = 0;
  #writeAt = Infinity;
  granted = 0;

  constructor(settings: GroupSettings) {
    this.#settings = settings;
    this.#state = emptyState(settings, 1, emptyControls(START), true);
  }

  run(action: LossyResetsAction): void {
    switch (action.kind) {
      case 'arrive':
        return this.#arrive(action.tokens);
      case 'end':
        return this.#end(action.pick, action.part);
      case 'advance':
        return this.#advance(action.ms);
      case 'write':
        return this.#write();
      case 'reset':
        return this.#reset();
    }
  }

  /** Money that is spent, and that calls in flight may come to. */
  committedUsd(): number {
    const inFlight = this.#running.map(({ reserved }) => reserved?.usd ?? 0);
    return inFlight.reduce((sum, usd) => sum + usd, this.#spentUsd);
  }

  /** The most that was taken in any minute, by what `of` reads. */
  mostInAMinute(of: (taken: LossyResetsTaken) => number): number {
    let most = 0;
    for (const { at } of this.taken) {
      const within = this.taken.filter((each) => each.at > at - MINUTE_MS && each.at <= at);
      most = Math.max(
        most,
        within.reduce((sum, each) => sum + of(each), 0),
      );
    }
    return most;
  }

  /** Counts what is left of the limit of requests of a day. */
  requestsLeft(): number {
    const windows = this.#state.controls.rates.windows.rpd?.bins ?? [];
    const used = windows.reduce((sum, [, amount]) => sum + amount, 0);
    return (this.#settings.rates.rpd ?? Infinity) - used;
  }

  #arrive(tokens: number): void {
    const ticket = someTicket(`t${(this.#arrivals += 1)}`, this.now, {
      wait: false,
      holder: { ...SOMEBODY, model: 'some-model' },
      estimate: {
        inputTokens: tokens,
        maxOutputTokens: 1,
        reserve: 'none',
        price: { input: TOKEN_PRICE, output: 0 },
      },
    });
    this.#step({ kind: 'acquire', ticket, leaseId: leaseIdOf(ticket.id, 1), sliceMs: 8_000 });
  }

  #end(pick: number, part: number): void {
    const call = this.#running[pick % this.#running.length];
    if (call === undefined) return;
    this.#running = this.#running.filter((other) => other !== call);
    const { ticket, attachment, reserved } = call;
    const inputTokens = Math.floor((reserved?.demand.inputTokens ?? 0) * part);
    const usd = inputTokens * TOKEN_PRICE;
    this.#spentUsd += usd;
    const taken = this.#takenBy.get(ticket.id);
    if (taken !== undefined) taken.tokens = inputTokens;
    this.#step({
      kind: 'release',
      leaseId: leaseIdOf(ticket.id, 1),
      outcome: 'success',
      settlement: { requests: 1, inputTokens, outputTokens: 0, usd, seen: null },
      claim: this.#claimOf(call, attachment),
    });
  }

  #claimOf({ ticket, reserved, startedAt }: LossyResetsRunning, attachment: number) {
    const { id: ticketId, holder, lane, slots } = ticket;
    const heldMs = this.now - startedAt;
    const bare = { hasLapsed: false, nested: null, heirOf: [], heldMs, reserved, attachment };
    return { leaseId: leaseIdOf(ticketId, 1), ticketId, holder, lane, slots, ...bare };
  }

  #advance(ms: number): void {
    const target = this.now + ms;
    while (this.#writeAt <= target) {
      this.now = instant(Math.max(this.now, this.#writeAt));
      this.#write();
    }
    this.now = instant(target);
    this.#step({ kind: 'tick' });
    for (const { ticket } of this.#running) {
      this.#step({ kind: 'renew', leaseId: leaseIdOf(ticket.id, 1) });
    }
  }

  #step(event: GroupEvent): void {
    const effects = step(this.#state, event, this.now);
    for (const effect of effects) this.#perform(effect);
  }

  #perform(effect: Effect): void {
    if (effect.kind === 'write') this.#writeAt = Math.min(this.#writeAt, this.now + 50);
    if (effect.kind !== 'grant') return;
    if (!effect.isCovered) this.#write();
    const { id, attachment, reserved, ticketId } = effect.lease;
    const known = this.#running.find(({ ticket }) => ticket.id === ticketId);
    if (known !== undefined) {
      Object.assign(known, { attachment, reserved });
      return;
    }
    assert.equal(id, leaseIdOf(ticketId, 1));
    const ticket = someTicket(ticketId, this.now, { holder: effect.lease.holder });
    const call = { ticket, attachment, reserved, startedAt: this.now };
    this.#running.push(call);
    this.granted += 1;
    const taken = { at: this.now, requests: 1, tokens: reserved?.demand.inputTokens ?? 0 };
    this.taken.push(taken);
    this.#takenBy.set(ticketId, taken);
  }

  /** It arrives at once: an answer that leaves meanwhile would wait for it. */
  #write(): void {
    this.#writeAt = Infinity;
    const { bound, isInRing, kept } = takeWrite(this.#state, this.now);
    confirmWrite(this.#state, bound.seq);
    const controls = kept?.controls ?? this.#stored.controls;
    const ahead = kept?.ahead ?? this.#stored.ahead;
    const untold = isInRing ? [] : bound.ended;
    const row = { bound, untold, controls, ahead, leases: [] };
    this.#stored = JSON.parse(JSON.stringify(row)) as Stored;
  }

  /** Everything that is not written is lost. Some holders come back at once. */
  #reset(): void {
    this.#writeAt = Infinity;
    const copy = JSON.parse(JSON.stringify(this.#stored)) as Stored;
    this.#state = recover(this.#settings, copy, this.#state.nextAttachment + 10, true, this.now);
    this.#write();
    for (const call of this.#running) {
      this.#step({ kind: 'resume', claim: this.#claimOf(call, call.attachment) });
    }
  }
}

const actionArb: fc.Arbitrary<LossyResetsAction> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('arrive' as const),
      tokens: fc.constantFrom(1, 5, 20, 60),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('end' as const),
      pick: fc.nat(9),
      part: fc.constantFrom(0, 0.3, 1),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('advance' as const),
      ms: fc.constantFrom(1, 40, 500, 1_500, 7_000, 30_000),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'write' as const }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'reset' as const }) },
);

const actionsArb = fc.array(actionArb, { minLength: 20, maxLength: 120, size: 'max' });

function settingsWith(
  rates: Partial<RateSettings>,
  perDayUsd: number | null = null,
): GroupSettings {
  return someSettings({
    slotsMax: 50,
    isMetered: true,
    rates: { ...UNMETERED.rates, ...rates },
    budgets: { perHourUsd: null, perDayUsd, perMonthUsd: null },
  });
}

test('no minute has more requests or tokens than allowed, whatever a reset loses', () => {
  let granted = 0;
  const limitsArb = fc.record({
    rpm: fc.constantFrom(2, 12, 120),
    tpm: fc.constantFrom(60, 300, 3_000),
  });
  fc.assert(
    fc.property(limitsArb, actionsArb, (limits, actions) => {
      const world = new LossyResetsWorld(settingsWith(limits));
      for (const action of actions) world.run(action);
      const requests = world.mostInAMinute((taken) => taken.requests);
      assert.ok(requests <= limits.rpm, `${requests} requests in a minute of ${limits.rpm}`);
      const tokens = world.mostInAMinute((taken) => taken.tokens);
      assert.ok(tokens <= limits.tpm, `${tokens} tokens in a minute of ${limits.tpm}`);
      granted += world.granted;
    }),
    runs(1_500),
  );
  assert.ok(granted > enough(8_000), `${granted} granted: the histories hardly reach a limit`);
});

test('no day spends more than its budget, whatever a reset loses', () => {
  let tight = 0;
  fc.assert(
    fc.property(fc.constantFrom(0.5, 2, 10), actionsArb, (perDayUsd, actions) => {
      const world = new LossyResetsWorld(settingsWith({}, perDayUsd));
      for (const action of actions) {
        world.run(action);
        const usd = world.committedUsd();
        assert.ok(usd <= perDayUsd + 1e-6, `${usd} USD committed of ${perDayUsd}`);
      }
      if (world.committedUsd() > perDayUsd * 0.8) tight += 1;
    }),
    runs(1_500),
  );
  assert.ok(tight > enough(20), `${tight} histories come near a budget`);
});

test('a reset costs a hundredth of the limit of a day at most, or one call', () => {
  const rpd = 1_000;
  fc.assert(
    fc.property(actionsArb, (actions) => {
      const world = new LossyResetsWorld(settingsWith({ rpd }));
      let resets = 0;
      for (const action of actions) {
        world.run(action);
        if (action.kind === 'reset') resets += 1;
        const taken = world.taken.length;
        const lost = rpd - taken - world.requestsLeft();
        assert.ok(lost >= 0, `${-lost} requests were forgotten`);
        assert.ok(lost <= (resets * rpd) / 100, `${lost} requests are lost in ${resets} resets`);
      }
    }),
    runs(1_000),
  );
});
