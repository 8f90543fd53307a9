import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isStopped } from '../../../src/core/capacity.ts';
import { instant } from '../../../src/core/words/ids.ts';
import type { UpstreamSignal } from '../../../src/core/words/signal.ts';
import { TestGroup } from '../../support/core-builders.ts';
import { runs } from '../runs.ts';

/** Reports of lease holders among refusals that Headgate sees: neither undoes the other, and one key cannot stop a group for long. */

const KINDS = [
  'concurrency',
  'overload',
  'error',
  'requests',
  'ramp',
  'unknown',
  'served',
] as const;
const WAITS_MS = [null, 0, 1_000, 30_000, 3_600_000];
const SECONDS_60 = 60_000;
const MINUTES_11 = 660_000;
const TICK_MS = 500;

type ReportsStep =
  | { readonly kind: 'call'; readonly isById: boolean }
  | { readonly kind: 'release'; readonly pick: number }
  | { readonly kind: 'answer'; readonly pick: number; readonly signal: Partial<UpstreamSignal> }
  | { readonly kind: 'advance'; readonly ms: number };

/** Makes steps with answers that Headgate sees (`null`) or that one of the keys reports. */
function stepArb(keys: readonly (string | null)[]): fc.Arbitrary<ReportsStep> {
  const pick = fc.nat(20);
  const signal = fc
    .record({
      kind: fc.constantFrom(...KINDS),
      retryAfterMs: fc.constantFrom(...WAITS_MS),
      slotsMax: fc.constantFrom(null, 1, 3),
      by: fc.constantFrom(...keys),
    })
    .map(({ by, ...rest }) => ({ ...rest, ...(by !== null && { reportedBy: by }) }));
  const ms = fc.constantFrom(1, 1_000, 10_000, SECONDS_60 - 1, SECONDS_60, SECONDS_60 + 1);
  return fc.oneof(
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('call'), isById: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('release'), pick }) },
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('answer'), pick, signal }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('advance'), ms }) },
  ) as fc.Arbitrary<ReportsStep>;
}

/** A group of eight slots, and the calls that hold them. */
class ReportsScene {
  readonly group = TestGroup.stored({ slotsMax: 8, releaseCooldownMs: 'auto' });
  /** End of the longest wait that Headgate has seen. */
  seenUntil = 0;
  stoppedMs = 0;
  #calls = 0;

  take(step: ReportsStep): void {
    const { group } = this;
    if (step.kind === 'advance') return this.#pass(step.ms);
    if (step.kind === 'call') {
      const patience = { timeoutMs: 1e9, sliceMs: 1e9 };
      group.ask(`c${(this.#calls += 1)}`, { isById: step.isById, ...patience });
      return;
    }
    const held = [...group.state.leases.values()].filter(({ phase }) => phase === 'held');
    const name = held[step.pick % held.length]?.ticketId;
    if (name === undefined) return;
    if (step.kind === 'release') return void group.release(name);
    const { kind, retryAfterMs, reportedBy } = step.signal;
    group.report(name, step.signal);
    const isPause =
      kind === 'requests' || kind === 'ramp' || kind === 'unknown' || kind === 'served';
    const waitMs = retryAfterMs ?? 0;
    if (reportedBy !== undefined || !isPause || waitMs === 0) return;
    this.seenUntil = Math.max(this.seenUntil, group.now + waitMs);
  }

  #pass(ms: number): void {
    const { group } = this;
    const until = group.now + ms;
    while (group.now < until) {
      const stepMs = Math.min(TICK_MS, until - group.now);
      if (isStopped(group.state, group.now)) this.stoppedMs += stepMs;
      group.now = instant(group.now + stepMs);
      group.tick();
    }
  }
}

test('reports never shorten a pause that Headgate has seen, live or stored', () => {
  fc.assert(
    fc.property(fc.array(stepArb([null, null, 'a', 'a', 'b', '']), { maxLength: 40 }), (steps) => {
      const scene = new ReportsScene();
      for (const step of steps) {
        scene.take(step);
        const { group, seenUntil } = scene;
        expect(group.member().controls.pause.until).toBeGreaterThanOrEqual(seenUntil);
        group.write();
        const stored = group.reset().member().controls.pause;
        expect(Math.max(group.now, stored.until)).toBeGreaterThanOrEqual(seenUntil);
      }
    }),
    runs(300),
  );
});

test('one key stops a group for at most a minute in eleven, and nothing of it stays', () => {
  fc.assert(
    fc.property(fc.array(stepArb(['a']), { minLength: 10, maxLength: 60 }), (steps) => {
      const scene = new ReportsScene();
      const { group } = scene;
      const began = group.now;
      for (const step of steps) scene.take(step);
      const periods = Math.ceil((group.now - began + 1) / MINUTES_11);
      expect(scene.stoppedMs).toBeLessThanOrEqual(periods * (SECONDS_60 + TICK_MS));
      scene.take({ kind: 'advance', ms: SECONDS_60 });
      const { ceiling, breaker, pause } = group.member().controls;
      expect([ceiling.slots, breaker.phase, pause.openMs]).toEqual([null, 'closed', 0]);
      expect(pause.until).toBeLessThanOrEqual(group.now);
    }),
    runs(300),
  );
});
