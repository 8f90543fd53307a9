// When a pool tells the directory that it is in use, and that it rests; and when it counts on being told of changes.
import fc from 'fast-check';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { instant } from '../../../src/core/words/ids.ts';
import { Presence } from '../../../src/group/idleness.ts';
import { onTimer } from '../../../src/runtime/async.ts';
import { windowMsOf } from '../../../src/runtime/deployment.ts';

const WINDOW_MS = 600_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A pool, its alarm, and its directory, which hears what it says unless it is out of reach. */
function scene(windowMs = WINDOW_MS) {
  const said: string[] = [];
  const is = { inUse: false, kept: true, reached: true, alarmAt: null as number | null };
  let usedAt = 0;
  const restsAt: number[] = [];
  let answer = (open: () => void): void => open();
  const presence: Presence = new Presence({
    now: () => instant(Date.now()),
    after: onTimer,
    isInUse: () => is.inUse,
    idleMs: () => Date.now() - usedAt,
    isKept: () => is.kept,
    windowMs,
    setAlarm: (at) => {
      is.alarmAt = at;
    },
    wake: () => {
      const window = presence.nextWindow();
      if (!is.reached) return Promise.resolve(false);
      said.push('in use');
      answer(() => presence.opened(window));
      return Promise.resolve(true);
    },
    rest: (window) => {
      if (!is.reached) return Promise.reject(new Error('out of reach'));
      restsAt.push(window);
      said.push('rests');
      return Promise.resolve();
    },
    waitUntil: () => {},
  });
  const use = async (): Promise<void> => {
    is.inUse = true;
    presence.note(true);
    await vi.advanceTimersByTimeAsync(0);
    is.inUse = false;
    usedAt = Date.now();
    presence.note(true);
    await vi.advanceTimersByTimeAsync(0);
  };
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  /** Lets time go on to the alarm. */
  const ring = async (): Promise<void> => {
    await pass(Math.max(0, (is.alarmAt ?? 0) - Date.now()));
    is.alarmAt = null;
    const ended = presence.end();
    await pass(10_000);
    await ended;
  };
  /** Keeps answers back, and returns what lets them arrive. */
  const keepAnswers = (): (() => void)[] => {
    const kept: (() => void)[] = [];
    answer = (open) => kept.push(open);
    return kept;
  };
  return { presence, said, restsAt, is, use, pass, ring, keepAnswers };
}

it('says it once in a window, however often it is used, and sets no timer', async () => {
  const { said, use, pass, is, ring, presence } = scene();
  for (let calls = 0; calls < 50; calls += 1) {
    await use();
    expect(vi.getTimerCount()).toBe(0);
    await pass(10_000);
  }
  expect(said).toEqual(['in use']);
  await ring();
  expect(said).toEqual(['in use', 'in use']);
  expect(is.alarmAt).toBeGreaterThan(Date.now());
  await ring();
  expect(said).toEqual(['in use', 'in use', 'rests']);
  expect(is.alarmAt).toBeNull();
  expect(presence.isInWindow).toBe(false);
  await pass(10 * WINDOW_MS);
  await use();
  expect(said).toEqual(['in use', 'in use', 'rests', 'in use']);
});

it('rests after one window where it was used at its beginning alone', async () => {
  const { said, use, ring } = scene();
  await use();
  await ring();
  expect(said).toEqual(['in use', 'rests']);
});

it('does not rest as long as somebody holds a slot', async () => {
  const { said, is, presence, ring, pass } = scene();
  is.inUse = true;
  presence.note(true);
  await pass(0);
  await ring();
  await ring();
  expect(said).toEqual(['in use', 'in use', 'in use']);
});

it('begins a window where it rests and something has changed, and not for a look', async () => {
  const { presence, said, use, ring, pass } = scene();
  await use();
  await ring();
  presence.note(false);
  await pass(0);
  expect(said).toEqual(['in use', 'rests']);
  presence.note(true);
  await pass(0);
  expect(said).toEqual(['in use', 'rests', 'in use']);
});

it('counts on nothing before it is answered, and not on an answer that is older than its rest', async () => {
  const { presence, use, ring, keepAnswers, restsAt } = scene();
  const kept = keepAnswers();
  await use();
  expect(presence.isInWindow).toBe(false);
  await use();
  kept.at(-1)?.();
  expect(presence.isInWindow).toBe(true);
  await ring();
  expect(restsAt).toHaveLength(1);
  vi.setSystemTime(Date.now() - 2 * WINDOW_MS);
  kept[0]?.();
  expect(presence.isInWindow).toBe(false);
});

it('counts as in use by a message that it sent before it said that it rests', async () => {
  const { presence, use, ring, pass, restsAt } = scene();
  await use();
  await pass(WINDOW_MS - 1_000);
  const asked = presence.nextWindow();
  await ring();
  // The directory takes the word for the window before.
  expect(restsAt[0]).toBeLessThan(asked);
  presence.opened(asked);
  expect(presence.isInWindow).toBe(true);
});

it('says it again where the directory was out of reach, and then in a window still counts as told', async () => {
  const { presence, said, is, use, pass, ring } = scene();
  is.reached = false;
  await use();
  expect(presence.isInWindow).toBe(false);
  await pass(2_000);
  is.reached = true;
  await use();
  expect(said).toEqual(['in use']);
  await pass(WINDOW_MS - 1_000);
  await use();
  is.reached = false;
  await ring();
  expect(presence.isInWindow).toBe(true);
  expect(is.alarmAt).toBeGreaterThan(Date.now() + WINDOW_MS / 2);
  await ring();
  // It may have been heard.
  expect(presence.isInWindow).toBe(false);
  is.reached = true;
});

it('says nothing of a pool that the directory does not keep, and ends the window of one that it forgets', async () => {
  const { presence, said, is, use, ring } = scene();
  is.kept = false;
  await use();
  await ring();
  expect(said).toEqual([]);
  is.kept = true;
  await use();
  is.kept = false;
  presence.note(false);
  expect(presence.isInWindow).toBe(false);
  expect(is.alarmAt).toBeNull();
});

it('goes on in the window of an instance before whose alarm is to come', () => {
  const before = (alarmAt: number | null): boolean => {
    const { presence } = scene();
    presence.recall(alarmAt);
    return presence.isInWindow;
  };
  expect(before(Date.now() + 1_000)).toBe(true);
  expect(before(null)).toBe(false);
  // It may have been on its way when that instance ended.
  expect(before(Date.now() - 1)).toBe(false);
});

it('ends a window within its length where the wall clock was set back since an instance before opened it', () => {
  const { presence, is } = scene();
  const windowEnd = Date.now() + WINDOW_MS;
  vi.setSystemTime(Date.now() - 3_600_000);
  presence.recall(windowEnd);
  expect(presence.isInWindow).toBe(true);
  expect(is.alarmAt).toBe(Date.now() + WINDOW_MS);
});

it('says by an instance that began with the alarm what ends the window before and none that comes', async () => {
  const { presence, restsAt, pass } = scene();
  const endedAt = Date.now();
  const ended = presence.end();
  await pass(0);
  await ended;
  expect(restsAt[0]).toBeGreaterThan(endedAt);
  expect(presence.nextWindow()).toBeGreaterThan(restsAt[0] ?? Infinity);
});

it('says it again where the window is over by its own clock and the alarm is late', async () => {
  const { said, use, pass, is } = scene();
  await use();
  await pass(WINDOW_MS);
  await use();
  expect(said).toEqual(['in use', 'in use']);
  expect(is.alarmAt).toBe(Date.now() + WINDOW_MS);
});

it('has windows of ten minutes, and of one where Headgate hosts itself', () => {
  expect(windowMsOf({})).toBe(WINDOW_MS);
  expect(windowMsOf({ BOOT_ID: 'a-process' })).toBe(60_000);
});

it.each([WINDOW_MS, 60_000])(
  'whatever its use, is said to rest half a window to one and a half after it, and not sooner (%i ms)',
  async (windowMs) => {
    const gaps = fc.array(fc.integer({ min: 1, max: 2 * windowMs }), {
      minLength: 1,
      maxLength: 12,
    });
    const property = fc.asyncProperty(gaps, async (waits) => {
      const { said, use, pass, is, presence } = scene(windowMs);
      let usedAt = Date.now();
      /** Lets alarms go off as they are due, until then. */
      const goOnTo = async (at: number): Promise<void> => {
        while (is.alarmAt !== null && is.alarmAt <= at) {
          const due = is.alarmAt;
          is.alarmAt = null;
          await pass(Math.max(0, due - Date.now()));
          const words = said.length;
          await presence.end();
          const idleMs = Date.now() - usedAt;
          expect(said.slice(words)).toEqual([idleMs < windowMs / 2 ? 'in use' : 'rests']);
          expect(idleMs).toBeLessThanOrEqual(windowMs * 1.5);
        }
        await pass(Math.max(0, at - Date.now()));
      };
      for (const gap of waits) {
        usedAt = Date.now();
        await use();
        expect(presence.isInWindow).toBe(true);
        await goOnTo(Date.now() + gap);
      }
      await goOnTo(usedAt + windowMs * 1.5);
      expect(said.at(-1)).toBe('rests');
      expect(presence.isInWindow).toBe(false);
    });
    await fc.assert(property, { numRuns: 100 });
  },
);
