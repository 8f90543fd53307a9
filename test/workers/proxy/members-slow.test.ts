// A member that accepts a call and sends no content in time is left for the next one, and holds no slot.
import { afterAll, expect, it } from 'vitest';
import { nothingLeaks, untilStatus } from '../support/pool.ts';
import { until } from '../support/worker.ts';
import { ask, newScene, SECRETS, servedAt, type MemberHere } from './members-scene.ts';

afterAll(nothingLeaks);

const { UPSTREAM_A: A, UPSTREAM_B: B } = SECRETS;

const FIRST: MemberHere = { name: 'a', secret: 'UPSTREAM_A', first_token_ms: 1_500 };
const SECOND: MemberHere = { name: 'b', secret: 'UPSTREAM_B', tier: 2 };

const MUTE = { atContent: true, silentAfterChunks: 0 };

it.each([
  ['announces an answer and nothing more', MUTE],
  ['sends headers and nothing more', { silentAfterChunks: 0 }],
  ['sends no headers', { firstByteDelayMs: 600_000 }],
])('a member that %s is left for the next one', async (_, settings) => {
  const at = await newScene({
    members: [FIRST, SECOND],
    settings: { here: { byKey: { [A]: settings } } },
  });
  const { status, headers } = await ask(at, 'call');
  expect([status, headers.get('headgate-member')]).toEqual([200, 'b']);
  expect(headers.get('headgate-tries')).toBe('2');
  await untilStatus(at.group, { in_use: 0, refusals_total: {} });
  await until(async () => expect((await at.here.stats()).inFlight).toBe(0));
});

it('a call stays at a member that begins in time, is the last one, or has no such bound', async () => {
  const slow = { firstByteDelayMs: 300 };
  const inTime = await newScene({
    members: [{ ...FIRST, first_token_ms: 600_000 }, SECOND],
    settings: { here: slow },
  });
  expect(await servedAt(inTime, 'in time')).toBe('a');
  const last = await newScene({
    members: [{ ...FIRST, first_token_ms: 1 }],
    settings: { here: slow },
  });
  expect(await servedAt(last, 'last')).toBe('a');
  const both = await newScene({
    members: [
      { ...FIRST, first_token_ms: 1 },
      { ...SECOND, first_token_ms: 1 },
    ],
    settings: { here: { byKey: { [A]: slow, [B]: slow } } },
  });
  expect(await servedAt(both, 'both')).toBe('b');
});

it.each([
  ['has no quota', { fail: 'quota' }],
  ['takes no calls with its key', { status: 401 }],
] as const)('a slow member serves the call where the other one %s', async (_, other) => {
  const at = await newScene({
    members: [{ ...FIRST, first_token_ms: 200 }, SECOND],
    settings: { here: { byKey: { [A]: { firstByteDelayMs: 600 }, [B]: other } } },
  });
  // The second call finds the other member ejected.
  for (const label of ['one', 'two']) expect(await servedAt(at, label)).toBe('a');
  await untilStatus(at.group, { in_use: 0 });
});
