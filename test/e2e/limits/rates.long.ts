import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { StrictArrival } from '../../strict-upstream/counts.ts';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import type { LifecycleRandom } from '../support/lifecycle-random.ts';
import { createRandom } from '../support/lifecycle-random.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import type { SizedCall } from '../support/limits-call.ts';
import { openSized } from '../support/limits-call.ts';
import type { Endings } from '../support/limits-load.ts';
import { endingsOf } from '../support/limits-load.ts';
import { startScopes } from '../support/limits-stage.ts';

/**
 * The same limits in a group and at its upstream, which counts the last minute exactly. A queue of calls
 * of mixed size and length, each case for about five minutes.
 */
type RatesLimit = 'rpm' | 'tpm';

interface Case {
  readonly id: string;
  readonly name: string;
  readonly limits: Readonly<Partial<Record<RatesLimit, number>>>;
  /** The limit that the calls run into. */
  readonly bound: RatesLimit;
  readonly calls: number;
  /** Tokens of input and of output. */
  readonly sizeOf: (random: LifecycleRandom) => readonly [number, number];
  /** Burst at the beginning. It is left out, or it would hide that less is used later. */
  readonly burst: number;
  /** Until then it is found out how much calls write, which is far less than is assumed at first. */
  readonly skipMs: number;
  /** Part of the limit that whole calls can use in a minute, where that is less. */
  readonly fitting?: number;
}

const BOTH = { rpm: 60, tpm: 10_000 };

/** The part of the limit to be used. */
const USED_MIN = 0.95;

/**
 * The part of the attempts that may be refused where tokens bind: how much a call writes is only known at
 * its end. Requests are counted before they are sent: there it is none.
 */
const REFUSED_MAX = 0.05;

const few = (rpm: number, calls: number): Case => ({
  id: `rpm-${rpm}`,
  name: `RPM ${rpm}`,
  limits: { rpm },
  bound: 'rpm',
  calls,
  sizeOf: (random) => [random.between(10, 3_000), random.between(5, 200)],
  burst: 0,
  skipMs: 0,
});

const CASES: readonly Case[] = [
  few(1, 6),
  few(3, 16),
  few(5, 26),
  {
    id: 'small',
    name: 'RPM 60 and TPM 10,000, small calls',
    limits: BOTH,
    bound: 'rpm',
    calls: 290,
    sizeOf: (random) => [random.between(10, 80), random.between(5, 60)],
    burst: 10,
    skipMs: 0,
  },
  {
    id: 'mixed',
    name: 'RPM 60 and TPM 10,000, mixed calls',
    limits: BOTH,
    bound: 'tpm',
    calls: 150,
    sizeOf: (random) => [random.between(20, 420), random.between(5, 200)],
    burst: 0,
    skipMs: 60_000,
  },
  {
    id: 'large',
    name: 'RPM 60 and TPM 10,000, some large calls',
    limits: BOTH,
    bound: 'tpm',
    calls: 100,
    sizeOf: (random) => [
      random.pick([
        [9, random.between(20, 500)],
        [1, random.between(1_000, 1_800)],
      ]),
      random.between(5, 200),
    ],
    burst: 0,
    skipMs: 60_000,
  },
  {
    id: 'whole',
    name: 'TPM 10,000, calls of which two fit into a minute',
    limits: { tpm: 10_000 },
    bound: 'tpm',
    calls: 10,
    sizeOf: () => [3_900, 50],
    burst: 0,
    skipMs: 0,
    fitting: 2 * 3_950,
  },
];

let stage: LifecycleStage;

/** All of them at the same time. */
const runs = new Map<string, Promise<Endings>>();

beforeAll(async () => {
  stage = await startScopes(
    CASES.map(({ id, limits }) => ({ id, group: { limits, queue: { timeout_ms: 900_000 } } })),
    {},
  );
  for (const each of CASES) runs.set(each.id, run(each));
});

afterAll(() => stage.close());

function sizedCall({ id, sizeOf }: Case, index: number, random: LifecycleRandom): SizedCall {
  const [inputTokens, outputTokens] = sizeOf(random);
  return {
    upstream: id,
    label: `call-${index}`,
    inputTokens,
    outputTokens,
    // Hardly anybody says how much there will be.
    maxTokens: outputTokens + random.between(0, 2_000),
    headers: { 'x-strict-first-byte-delay-ms': String(random.between(0, 3_000)) },
  };
}

const AMOUNTS: Readonly<Record<RatesLimit, (arrival: StrictArrival) => number>> = {
  rpm: () => 1,
  tpm: ({ inputTokens, outputTokens }) => inputTokens + outputTokens,
};

/** The part of the limit that was used between the first call after `skipMs` and the last call. */
function usedShare(arrivals: readonly StrictArrival[], given: Case): number {
  const { bound, limits, skipMs, burst, fitting } = given;
  const from = (arrivals[0]?.at ?? NaN) + skipMs;
  const counted = arrivals.filter(({ at, refusedAs }) => refusedAs === null && at >= from);
  const last = counted.pop()?.at ?? NaN;
  const minutes = (last - (counted[0]?.at ?? NaN)) / 60_000;
  const used = counted.reduce((sum, arrival) => sum + AMOUNTS[bound](arrival), 0);
  return (used - burst) / ((fitting ?? limits[bound] ?? NaN) * minutes);
}

async function run(given: Case): Promise<Endings> {
  const { id, limits, calls } = given;
  stage.upstream.configure({ rates: { '*': limits } }, id);
  const random = createRandom(calls);
  const sent: LifecycleOpenCall[] = [];
  for (let index = 0; index < calls; index += 1) {
    sent.push(openSized(stage.url(), sizedCall(given, index, random)));
    // So that they come in the order in which they are sent.
    await delay(5);
  }
  return endingsOf(sent);
}

it.each(CASES)(
  '$name in both: 95 % or more of it is used, and no client sees a 429',
  async (given) => {
    const { id, bound, calls } = given;
    expect(await runs.get(id)).toEqual({ 200: calls });
    const { arrivals, refused } = stage.upstream.stats(id);
    expect(usedShare(arrivals, given)).toBeGreaterThanOrEqual(USED_MIN);
    const { tokens = 0, ...others } = refused;
    expect(others).toEqual({});
    expect(tokens / arrivals.length).toBeLessThanOrEqual(bound === 'rpm' ? 0 : REFUSED_MAX);
  },
);
