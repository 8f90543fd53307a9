// When a pool tells the directory that it is in use, and that it rests; and when nobody may have told it of changes.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { RESTS_AFTER_MS } from '../../../src/contract/rpc/presence-rpc.ts';
import { instant } from '../../../src/core/words/ids.ts';
import { Presence } from '../../../src/group/presence.ts';

const MINUTE_MS = 60_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A pool and its directory, which hears what it says unless it is out of reach. */
function scene({ restedAt = null as number | null, readsAfterMs = 5 * MINUTE_MS } = {}) {
  const said: string[] = [];
  const is = { inUse: false, kept: true, reached: true };
  const hear = (word: string): Promise<boolean> => {
    if (!is.reached) return Promise.reject(new Error('out of reach'));
    said.push(word);
    return Promise.resolve(true);
  };
  const presence: Presence = new Presence({
    now: () => instant(Date.now()),
    isInUse: () => is.inUse,
    isKept: () => is.kept,
    restedAt,
    readsAfterMs,
    remember: () => {},
    wake: async () => {
      const isHeard = await hear('in use');
      presence.woken();
      return isHeard;
    },
    rest: async () => {
      await hear('rests');
    },
    waitUntil: () => {},
  });
  const use = (inUse: boolean): void => {
    is.inUse = inUse;
    presence.note(true);
  };
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  return { presence, said, is, use, pass };
}

it('says it once, however often it is used', async () => {
  const { said, use, pass } = scene();
  for (let calls = 0; calls < 5; calls += 1) {
    use(true);
    await pass(1_000);
    use(false);
    await pass(RESTS_AFTER_MS - 1_000);
  }
  expect(said).toEqual(['in use']);
  await pass(RESTS_AFTER_MS);
  expect(said).toEqual(['in use', 'rests']);
  await pass(10 * MINUTE_MS);
  use(true);
  await pass(0);
  expect(said).toEqual(['in use', 'rests', 'in use']);
});

it('says anew that it rests where something has changed, and not for a look', async () => {
  const { presence, said, use, pass } = scene();
  use(true);
  use(false);
  await pass(2 * RESTS_AFTER_MS);
  presence.note(false);
  await pass(2 * RESTS_AFTER_MS);
  expect(said).toEqual(['in use', 'rests']);
  presence.note(true);
  await pass(2 * RESTS_AFTER_MS);
  expect(said).toEqual(['in use', 'rests', 'rests']);
});

it('says it again where the directory was out of reach', async () => {
  const { presence, said, is, use, pass } = scene();
  is.reached = false;
  use(true);
  await pass(2_000);
  is.reached = true;
  presence.note(false);
  await pass(0);
  expect(said).toEqual(['in use']);
});

it('says nothing of a pool that the directory does not keep', async () => {
  const { said, is, use, pass } = scene();
  is.kept = false;
  use(true);
  use(false);
  await pass(2 * RESTS_AFTER_MS);
  expect(said).toEqual([]);
});

it('may have been left alone once it has rested for long, until the directory has answered', async () => {
  const { presence, use, pass } = scene();
  expect(presence.mayBeUntold).toBe(false);
  use(true);
  use(false);
  await pass(2 * RESTS_AFTER_MS);
  expect(presence.mayBeUntold).toBe(false);
  await pass(5 * MINUTE_MS);
  expect(presence.mayBeUntold).toBe(true);
  presence.woken();
  expect(presence.mayBeUntold).toBe(false);
});

it.each([
  ['an instance before rested lately', Date.now() - MINUTE_MS, 5 * MINUTE_MS, false],
  ['an instance before rested long ago', Date.now() - 6 * MINUTE_MS, 5 * MINUTE_MS, true],
  ['the clock was set back since', Date.now() + 60 * MINUTE_MS, 5 * MINUTE_MS, true],
  ['a process before may have ended in use', null, 0, true],
])('where %s', (_, restedAt, readsAfterMs, expected) => {
  expect(scene({ restedAt, readsAfterMs }).presence.mayBeUntold).toBe(expected);
});
