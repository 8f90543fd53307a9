// Whom a signal of the upstream is about: of a call in a group of its caller, one of its model and one of
// its upstream, only the one that the signal means.
import { afterAll, beforeEach, expect, it } from 'vitest';
import { keyHeader, keyOf } from '../order/scene.ts';
import { nothingLeaks, pool } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { passTime } from '../support/time.ts';
import { configure, until } from '../support/worker.ts';
import { pausedMs, send, served, streaming, reportedBy, type LimitsStage } from './stage.ts';

let scenes = 0;
let strict: Strict;
let stage: LimitsStage;
let ofCaller = '';
let ofModel = '';
let ofUpstream = '';

const HOLDS = { release_cooldown_ms: 0, cancel_cooldown_ms: 0, failure_hold_ms: 20_000 };
const ACME = keyHeader('acme');

beforeEach(async () => {
  scenes += 1;
  strict = await strictScope('about');
  const upstream = `about-${scenes}`;
  ofCaller = `caller-${scenes}`;
  ofModel = `model-${scenes}`;
  ofUpstream = `upstream-${scenes}`;
  stage = { strict, upstream, group: ofModel, chat: `/${upstream}/v1/chat/completions` };
  const limits = { max_concurrency: 8 };
  await configure({
    upstreams: [{ id: upstream, base_url: strict.url }],
    groups: [
      { name: ofUpstream, match: { upstreams: [upstream] }, limits, holds: HOLDS },
      {
        name: ofModel,
        match: { upstreams: [upstream], models: ['m'] },
        limits,
        holds: HOLDS,
      },
      { name: ofCaller, match: { keys: ['acme'] }, limits, holds: HOLDS },
    ],
    keys: [await keyOf('acme'), await keyOf('bolt')],
  });
});

afterAll(nothingLeaks);

/** A call of acme's for the model, which does not wait for a second turn. */
function refused(headers: Record<string, string>, path = stage.chat) {
  return reportedBy(
    send(stage, 'refused', { path, headers: { ...ACME, 'headgate-max-wait': '0', ...headers } }),
  );
}

/** Reads what each group made of it, the caller's first. */
async function marks() {
  const all = [];
  for (const group of [ofCaller, ofModel, ofUpstream]) {
    const status = await pool(group).status();
    const { limit, refusals_total: refusals, cooling, in_use } = status;
    all.push({
      refusals,
      effective: limit.effective,
      isPaused: pausedMs(status) > 0,
      cooling,
      in_use,
    });
  }
  return all;
}

const UNTOUCHED = { refusals: {}, effective: 8, isPaused: false, cooling: 0, in_use: 0 };

async function untilMarks(expected: object[]): Promise<void> {
  await until(async () => expect(await marks()).toEqual(expected));
  passTime(20_000);
}

it('a rate of a model stops the group of the model', async () => {
  const headers = { 'x-strict-fail': 'requests', 'x-strict-fail-wait-ms': '15000' };
  expect(await refused(headers)).toMatchObject({ status: 429 });
  const calls = [
    // Of another model, by the same caller; and of the model, by another caller.
    send(stage, 'other model', { model: 'other', headers: ACME }),
    send(stage, 'other caller', { headers: { ...keyHeader('bolt'), 'headgate-max-wait': '1s' } }),
  ] as const;
  expect(await reportedBy(calls[0])).toEqual(served(1));
  expect(await reportedBy(calls[1])).toMatchObject({ status: 429, reason: 'upstream_limited' });
  // The slot is down wherever the provider counts, for the call may count there still.
  await untilMarks([
    UNTOUCHED,
    { ...UNTOUCHED, refusals: { requests: 1 }, isPaused: true, cooling: 1 },
    { ...UNTOUCHED, cooling: 1 },
  ]);
});

it('too many calls of a model at once bring down what the group of the model has', async () => {
  const holders = [
    await streaming(stage, 'a', { headers: ACME }),
    await streaming(stage, 'b', { headers: ACME }),
  ];
  expect(await refused({ 'x-strict-fail': 'concurrency' })).toMatchObject({ status: 429 });
  await strict.resume();
  for (const { end } of holders) expect(await end).toBe('done');
  await untilMarks([
    UNTOUCHED,
    { ...UNTOUCHED, refusals: { concurrency: 1 }, effective: 2, cooling: 1 },
    { ...UNTOUCHED, cooling: 1 },
  ]);
});

it('an overload of the whole upstream brings down what the group of the upstream has', async () => {
  const path = `/${stage.upstream}/v1/messages`;
  expect(await refused({ 'x-strict-fail': 'overload' }, path)).toMatchObject({ status: 529 });
  await untilMarks([
    UNTOUCHED,
    { ...UNTOUCHED, cooling: 1 },
    { ...UNTOUCHED, refusals: { overload: 1 }, effective: 5, cooling: 1 },
  ]);
});

it('a connection that breaks is about the upstream', async () => {
  expect(await refused({ 'x-strict-fail': 'reset' })).toMatchObject({ status: 502 });
  await untilMarks([
    UNTOUCHED,
    { ...UNTOUCHED, cooling: 1 },
    { ...UNTOUCHED, refusals: { error: 1 }, cooling: 1 },
  ]);
});

it.each([
  [
    'a pause',
    { 'x-strict-fail': 'requests', 'x-strict-fail-wait-ms': '600000' },
    'upstream_limited',
  ],
  ['a limit of hours', { 'x-strict-fail': 'long_window' }, 'upstream_limited'],
])(
  'a call that would wait in vain for the end of %s in one of its groups is told at once',
  async (_, headers, reason) => {
    await refused(headers);
    await until(async () => expect((await marks())[1]).toMatchObject({ isPaused: true }));
    // If it waited it would do so for longer than this test may take.
    const one = send(stage, 'one', { headers: { ...ACME, 'headgate-max-wait': '300s' } });
    expect(await reportedBy(one)).toMatchObject({ status: 429, reason });
    expect(await pool(ofCaller).status()).toMatchObject({ in_use: 0, queued: 0 });
    passTime(3_600_000);
  },
);

it('a call of all three groups that was refused waits for the pause, holds nothing meanwhile, and is served', async () => {
  await strict.failNext('requests');
  const one = send(stage, 'one', { headers: ACME });
  await until(async () => {
    expect((await pool(ofModel).status()).refusals_total).toEqual({ requests: 1 });
    expect(await pool(ofCaller).status()).toMatchObject({ in_use: 0, queued: 0, cooling: 0 });
    expect(await pool(ofUpstream).status()).toMatchObject({ in_use: 0, queued: 0 });
  });
  passTime(1_000);
  for (const group of [ofModel, ofUpstream]) await pool(group).status();
  expect(await reportedBy(one)).toEqual(served(2));
  passTime(20_000);
});
