import { afterAll, beforeAll, expect, it } from 'vitest';
import type { StrictArrival } from '../../strict-upstream/counts.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { clock, until } from '../support/lifecycle-wait.ts';
import { openSized } from '../support/limits-call.ts';
import { startScopes } from '../support/limits-stage.ts';

/** More slots than calls, so that nothing but its rate bounds what a group lets through. */
const SLOTS = 100;

/** Clocks of two processes may differ by this. */
const CLOCK_MS = 5;

/** How long a call that may go takes to be there, on a machine that is busy with other things. */
const LATE_MS = 2_000;

/** Of input, in each call. */
const CALL_TOKENS = 160;

interface LimitsPace {
  readonly id: string;
  readonly name: string;
  readonly limits: Readonly<Record<string, number>>;
  readonly calls: number;
  /** Amount of the limit that a call takes. */
  readonly amountOf: (arrival: StrictArrival) => number;
  /** Maximum that may have been taken after so many milliseconds. */
  readonly allowed: (ms: number) => number;
}

const PACES: readonly LimitsPace[] = [
  {
    id: 'starts',
    name: 'starts_per_s 10',
    limits: { starts_per_s: 10 },
    calls: 30,
    amountOf: () => 1,
    allowed: (ms) => 1 + ms / 100,
  },
  {
    id: 'requests',
    name: 'RPM 60',
    limits: { rpm: 60 },
    calls: 12,
    amountOf: () => 1,
    allowed: (ms) => 10 + ms / 1_000,
  },
  {
    id: 'tokens',
    name: 'TPM 10,000',
    limits: { tpm: 10_000 },
    calls: 12,
    amountOf: ({ inputTokens }) => inputTokens,
    // Of a call of more than 1 % of the limit only that much need be there: the rest of one is owed.
    allowed: (ms) => (10_000 / 60) * (10 + ms / 1_000) + (CALL_TOKENS - 100),
  },
];

let stage: LifecycleStage;

beforeAll(async () => {
  stage = await startScopes(
    PACES.map(({ id, limits }) => ({
      id,
      group: { limits: { max_concurrency: SLOTS, ...limits } },
    })),
    // Each call stays, so that the slots fill.
    { silentAfterChunks: 1 },
  );
});

afterAll(() => stage.close());

it.concurrent.each(PACES)(
  '$name bounds how fast the slots fill, and no more than that',
  async ({ id, calls, amountOf, allowed }) => {
    const { upstream } = stage;
    const sentAt = clock();
    const sent = Array.from({ length: calls }, (_, i) =>
      openSized(stage.url(), {
        upstream: id,
        label: `call-${i}`,
        inputTokens: CALL_TOKENS,
        outputTokens: 5,
      }),
    );
    await until('all are there', () => upstream.stats(id).granted === calls);
    let taken = 0;
    for (const arrival of upstream.stats(id).arrivals) {
      taken += amountOf(arrival);
      expect(taken).toBeLessThanOrEqual(allowed(arrival.at - sentAt + CLOCK_MS));
    }
    // And nobody is made to wait for longer than that.
    expect(taken).toBeGreaterThan(0.95 * allowed(clock() - sentAt - LATE_MS));
    for (const call of sent) call.leave('RST');
  },
);
