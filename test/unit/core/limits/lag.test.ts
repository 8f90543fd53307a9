import { describe, expect, test } from 'vitest';
import { slotsLearned } from '../../../../src/core/capacity.ts';
import { emptyControls } from '../../../../src/core/member.ts';
import { LAG_MAX_MS } from '../../../../src/core/parts/lag.ts';
import { LEASE_TTL_MS, type GroupSettings } from '../../../../src/core/words/settings.ts';
import { TestGroup } from '../../../support/core-builders.ts';

/** Lessons of a refusal that follows soon on a call that has ended. */

const FIRST_MS = 200;
const AUTO = {
  slotsMax: 2,
  timeoutMs: 600_000,
  releaseCooldownMs: 'auto',
  cancelCooldownMs: 'auto',
  failureCooldownMs: 2_000,
} as const satisfies Partial<GroupSettings>;

const sliceMs = 600_000;
const TOO_MANY = { kind: 'concurrency' } as const;

/** A group of which one call runs and another has just ended. */
function group(settings: Partial<GroupSettings> = {}): TestGroup {
  const started = TestGroup.stored({ ...AUTO, ...settings });
  started.askAll('runs', 'ends');
  started.release('ends');
  return started;
}

/** The upstream refuses a call, which gives its slot back. */
function refuse(upstream: TestGroup, name: string, attempt = 1): void {
  upstream.report(name, TOO_MANY, false, attempt);
  upstream.release(name, 'failed', attempt);
}

const cooldownMs = ({ state }: TestGroup): number => state.controls.lag.ms;

/** How long the next call waits for the slot of one that ends now. */
function waitMs(upstream: TestGroup): number {
  upstream.ask('waits', { sliceMs });
  const from = upstream.now;
  while (upstream.waiting().length > 0) upstream.advance(upstream.wakesIn());
  return upstream.now - from;
}

describe('a refusal within the limit, after a call that has just ended', () => {
  test('makes slots cool down, and lowers no ceiling', () => {
    const lagging = group();
    lagging.ask('a');
    refuse(lagging, 'a');
    expect(cooldownMs(lagging)).toBe(FIRST_MS);
    expect(slotsLearned(lagging.state)).toBe(2);
  });

  test('is no failure: the slot of its call comes back when the lag is over', () => {
    const lagging = group();
    lagging.ask('a');
    refuse(lagging, 'a');
    expect(waitMs(lagging)).toBe(FIRST_MS);
  });

  test('teaches a group of one slot, beside nobody', () => {
    const alone = TestGroup.stored({ ...AUTO, slotsMax: 1 });
    alone.ask('ends');
    alone.release('ends');
    alone.ask('a');
    refuse(alone, 'a');
    expect(cooldownMs(alone)).toBe(FIRST_MS);
  });

  test('teaches where the limit is only assumed, and where no ceiling is learned', () => {
    for (const settings of [{ isHard: false }, { isAdaptive: false }]) {
      const lagging = group(settings);
      lagging.ask('a');
      refuse(lagging, 'a');
      expect(cooldownMs(lagging)).toBe(FIRST_MS);
    }
  });

  test('counts once for all that went out before the cool-down', () => {
    const lagging = TestGroup.stored({ ...AUTO, slotsMax: 3 });
    lagging.askAll('runs', 'one', 'other');
    lagging.release('one');
    lagging.release('other');
    lagging.askAll('a', 'b');
    refuse(lagging, 'a');
    refuse(lagging, 'b');
    expect(cooldownMs(lagging)).toBe(FIRST_MS);
  });

  test('makes the cool-down the longest, the second time', () => {
    const lagging = group();
    lagging.ask('a');
    refuse(lagging, 'a');
    lagging.advance(FIRST_MS);
    lagging.ask('a', { attempt: 2 });
    refuse(lagging, 'a', 2);
    expect(cooldownMs(lagging)).toBe(LAG_MAX_MS);
    expect(slotsLearned(lagging.state)).toBe(2);
  });

  test('is of a lower ceiling where the longest cool-down does not cure it', () => {
    const lower = group();
    for (const [index, ms] of [0, FIRST_MS, LAG_MAX_MS].entries()) {
      lower.advance(ms);
      lower.ask('a', { attempt: index + 1 });
      refuse(lower, 'a', index + 1);
    }
    expect(slotsLearned(lower.state)).toBe(1);
    expect(cooldownMs(lower)).toBe(0);
  });

  test('is of no lag for a minute after that, until the group is full again', () => {
    const lower = group({ slotsMax: 3 });
    lower.ask('runs-too');
    for (const [index, ms] of [0, FIRST_MS, LAG_MAX_MS].entries()) {
      lower.advance(ms);
      lower.ask('a', { attempt: index + 1 });
      refuse(lower, 'a', index + 1);
    }
    expect(slotsLearned(lower.state)).toBe(2);
    lower.advance(2_000);
    lower.release('runs-too');
    lower.ask('b');
    refuse(lower, 'b');
    expect(slotsLearned(lower.state)).toBe(1);
    expect(cooldownMs(lower)).toBe(0);
  });
});

describe('a ceiling that falls', () => {
  test('takes the cool-down back that seemed to cure it', () => {
    const lower = group({ slotsMax: 3 });
    lower.ask('runs-too');
    for (const [index, ms] of [0, FIRST_MS].entries()) {
      lower.advance(ms);
      lower.ask(`a${index}`);
      refuse(lower, `a${index}`);
    }
    expect(cooldownMs(lower)).toBe(LAG_MAX_MS);
    // Beside fewer, as slots are down for so long, others are accepted.
    lower.release('runs-too');
    lower.advance(LAG_MAX_MS);
    lower.ask('b');
    lower.release('b');
    lower.advance(2 * LAG_MAX_MS);
    lower.askAll('c', 'd');
    refuse(lower, 'd');
    lower.advance(FIRST_MS);
    expect(slotsLearned(lower.state)).toBe(2);
    expect(cooldownMs(lower)).toBe(0);
  });
});

describe('a refusal is of no lag', () => {
  test('where nothing has ended', () => {
    const lower = TestGroup.stored(AUTO);
    lower.askAll('runs', 'a');
    refuse(lower, 'a');
    expect(cooldownMs(lower)).toBe(0);
    expect(slotsLearned(lower.state)).toBe(1);
  });

  test('where the last end is longer ago than any lag', () => {
    const lower = group();
    lower.advance(LAG_MAX_MS);
    lower.ask('a');
    refuse(lower, 'a');
    expect(cooldownMs(lower)).toBe(0);
    expect(slotsLearned(lower.state)).toBe(1);
  });

  test('where it names fewer than there were', () => {
    const lower = group();
    lower.ask('a');
    lower.report('a', { ...TOO_MANY, slotsMax: 1 });
    expect(cooldownMs(lower)).toBe(0);
    expect(slotsLearned(lower.state)).toBe(1);
  });

  test('where the ended call had been refused, or was never sent', () => {
    const lower = TestGroup.stored({ ...AUTO, slotsMax: 3, failureCooldownMs: 0 });
    lower.askAll('runs', 'refused', 'unsent');
    refuse(lower, 'refused');
    lower.release('unsent', 'unused');
    lower.ask('a');
    refuse(lower, 'a');
    expect(cooldownMs(lower)).toBe(0);
  });

  test('where the cool-down is configured', () => {
    for (const releaseCooldownMs of [0, 7]) {
      const set = group({ releaseCooldownMs });
      set.advance(7);
      set.ask('a');
      refuse(set, 'a');
      expect(cooldownMs(set)).toBe(0);
      expect(slotsLearned(set.state)).toBe(1);
    }
  });

  test('where it is again of the call that made the cool-down longer, and others were accepted since', () => {
    const lagging = group();
    lagging.ask('a');
    refuse(lagging, 'a');
    lagging.advance(FIRST_MS);
    lagging.ask('b');
    lagging.advance(100);
    lagging.release('b');
    lagging.advance(FIRST_MS);
    lagging.ask('a', { attempt: 2 });
    refuse(lagging, 'a', 2);
    expect(cooldownMs(lagging)).toBe(FIRST_MS);
  });
});

describe('the cool-down', () => {
  /** Runs calls of 50 ms one after the other, beside one that goes on, before an upstream that lags. */
  function run(lagging: TestGroup, lagMs: number, calls: number): number {
    let refused = 0;
    let endedAt = lagging.now;
    for (let index = 0; index < calls; index += 1) {
      const name = `call-${calls}-${index}`;
      const renewed = index % 20 === 0 ? lagging.renew('runs') : [];
      expect(renewed).toEqual([]);
      for (let attempt = 1, isOver = false; !isOver; attempt += 1) {
        lagging.ask(name, { sliceMs, attempt });
        while (lagging.waiting().length > 0) lagging.advance(lagging.wakesIn());
        isOver = lagging.now - endedAt >= lagMs;
        if (!isOver) {
          refuse(lagging, name, attempt);
          refused += 1;
          continue;
        }
        lagging.advance(50);
        endedAt = lagging.now;
        lagging.release(name, 'success', attempt);
      }
    }
    return refused;
  }

  test.each([3, 30, 150, 500, 950])('comes near a lag of %i ms, and follows it', (lagMs) => {
    const lagging = group();
    run(lagging, lagMs, 400);
    expect(cooldownMs(lagging)).toBeGreaterThanOrEqual(lagMs);
    expect(cooldownMs(lagging)).toBeLessThanOrEqual(Math.max(lagMs + 5, 1.15 * lagMs));
    run(lagging, 0, 3_000);
    expect(cooldownMs(lagging)).toBeLessThanOrEqual(5);
    expect(slotsLearned(lagging.state)).toBe(2);
  });

  test('is probed less and less often while the lag stays', () => {
    const lagging = group();
    run(lagging, 100, 400);
    expect(run(lagging, 100, 2_000)).toBeLessThanOrEqual(6);
  });

  test('is remembered over a reset, and forgotten by `relearn`', () => {
    const lagging = group();
    lagging.ask('a');
    refuse(lagging, 'a');
    const next = lagging.restart();
    next.advance(LEASE_TTL_MS);
    expect(cooldownMs(next)).toBe(FIRST_MS);
    next.ask('b');
    next.release('b');
    expect(next.inUse()).toBe(1);
    next.send({ kind: 'relearn' });
    expect(next.state.controls.lag).toEqual(emptyControls(next.now).lag);
  });
});
