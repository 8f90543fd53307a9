import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BODY_MEMORY_MIB } from '../../../../scripts/serve/body-memory.ts';
import {
  BODY_LIMITS,
  BodyBudget,
  bodyLimits,
  SCAN_BYTES_MAX,
} from '../../../../src/upstream/body/body-budget.ts';
import type { BodyLimits, Reservation } from '../../../../src/upstream/body/body-budget.ts';

const never = new AbortController().signal;

/** No byte is free, and all bodies are large: they wait for one room, in one line. */
const LARGE: BodyLimits = {
  freeBytes: 0,
  restingBytes: 0,
  groupBytes: 0,
  allBytes: 100,
  passingBytes: 0,
  smallBytes: 0,
  headBytes: 0,
};

/** Small bodies up to 20, heads up to 1. */
const MIXED: BodyLimits = {
  freeBytes: 60,
  restingBytes: 80,
  groupBytes: 10,
  allBytes: 100,
  passingBytes: 40,
  smallBytes: 20,
  headBytes: 1,
};

/** The clock of the isolate never goes back, from one test to the next neither. */
let startsAt = Date.now();

async function taken(
  budget: BodyBudget,
  bytes: number,
  maxWaitMs = Infinity,
): Promise<Reservation> {
  const reservation = await budget.take(bytes, maxWaitMs, never);
  if (typeof reservation === 'string') throw new Error(reservation);
  return reservation;
}

beforeEach(() => {
  startsAt += 600_000;
  vi.useFakeTimers({ now: startsAt });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('the body budget', () => {
  it('has room for the longest scan, and for a body of 20 MB beside all that wait', () => {
    const { allBytes, restingBytes } = BODY_LIMITS;
    expect(SCAN_BYTES_MAX).toBeLessThanOrEqual(allBytes);
    expect(allBytes - restingBytes).toBeGreaterThanOrEqual(20_000_000 + 1_000);
  });

  it('scales all that is held together by one figure, and nothing that is said of one body', () => {
    const { smallBytes, headBytes, ...together } = BODY_LIMITS;
    const doubled = Object.entries(together).map(([name, bytes]) => [name, 2 * bytes]);
    expect(bodyLimits(96)).toEqual({ ...Object.fromEntries(doubled), smallBytes, headBytes });
    expect(together).toMatchObject({ freeBytes: 24 * 1_048_576, allBytes: 48 * 1_048_576 });
  });

  it('lets 5,000 calls of one group wait with 200 KB each where Headgate hosts itself', () => {
    const waitingOf = (limits: BodyLimits): number => {
      const budget = new BodyBudget(limits);
      const calls = Array.from({ length: 5_000 }, () => budget.tryTake(200_000)?.rest('full'));
      return calls.filter(Boolean).length;
    };
    expect(waitingOf(bodyLimits(BODY_MEMORY_MIB))).toBe(5_000);
    expect(waitingOf(BODY_LIMITS)).toBe(125);
  });

  it('gives out exactly what it has', async () => {
    const budget = new BodyBudget(LARGE);
    const first = await taken(budget, 60);
    expect(await budget.take(41, 0, never)).toBe('crowded');
    const second = await taken(budget, 40);
    expect(budget.bytesHeld).toBe(100);
    first.keep(10);
    expect(budget.bytesHeld).toBe(50);
    first.keep(90);
    expect(budget.bytesHeld).toBe(50);
    first.release();
    first.release();
    second.release();
    expect(budget.bytesHeld).toBe(0);
  });

  it('asks nobody to wait below what is free, nor for a head at any time', () => {
    const budget = new BodyBudget(MIXED);
    const free = [budget.tryTake(50), budget.tryTake(10)];
    expect(free).not.toContain(null);
    expect(budget.tryTake(2)).toBeNull();
    expect(budget.tryTake(1)?.bytes).toBe(1);
    for (const one of free) one?.release();
    expect(budget.bytesHeld).toBe(1);
  });

  it('counts what is there whatever anybody says', () => {
    const budget = new BodyBudget(MIXED);
    const copy = budget.count(500);
    expect(budget.bytesHeld).toBe(500);
    copy.release();
    expect(budget.bytesHeld).toBe(0);
  });

  it('refuses what could never fit', async () => {
    await expect(new BodyBudget(LARGE).take(101, Infinity, never)).rejects.toThrow(RangeError);
  });

  it('takes back what was lost with a dead request', async () => {
    vi.useRealTimers();
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const budget = new BodyBudget(MIXED);
    await lose(budget);
    await vi.waitFor(() => {
      collect();
      expect(budget.bytesHeld).toBe(0);
      // What waited and what could be spared are forgotten with it.
      expect(budget.tryTake(60)?.rest('other')).toBe(true);
    }, 20_000);
  });
});

describe('bodies whose calls wait for a slot', () => {
  it('may do so below what is free, whichever their pool is', () => {
    const budget = new BodyBudget(MIXED);
    expect(budget.tryTake(50)?.rest('a')).toBe(true);
    expect(budget.tryTake(10)?.rest('a')).toBe(true);
    expect(budget.count(1).rest('b')).toBe(true);
  });

  it('of a pool that has much waiting already may not, and a little of others may', () => {
    const budget = new BodyBudget(MIXED);
    expect(budget.tryTake(60)?.rest('a')).toBe(true);
    expect(budget.count(2).rest('a')).toBe(false);
    expect(budget.count(10).rest('b')).toBe(true);
    expect(budget.count(2).rest('b')).toBe(false);
    expect(budget.count(8).rest('c')).toBe(true);
    expect(budget.count(3).rest('d')).toBe(false);
    expect(budget.count(2).rest('d')).toBe(true);
  });

  it('may not for long where not even a head has room', () => {
    const budget = new BodyBudget(MIXED);
    expect(budget.tryTake(60)?.rest('a')).toBe(true);
    for (let heads = 0; heads < 20; heads += 1) expect(budget.count(1).rest('a')).toBe(true);
    expect(budget.count(1).rest('b')).toBe(false);
  });

  it('may do so whatever came meanwhile, if it was free when they were read', () => {
    const budget = new BodyBudget(MIXED);
    const slow = budget.tryTake(50);
    expect(budget.count(20).rest('a')).toBe(false);
    for (let heads = 0; heads < 20; heads += 1) expect(budget.count(1).rest('b')).toBe(true);
    expect(slow?.rest('c')).toBe(true);
    expect(budget.count(1).rest('a')).toBe(true);
  });

  it('leave their room to others once they are granted', () => {
    const budget = new BodyBudget(MIXED);
    const first = budget.tryTake(60);
    const second = budget.count(20);
    first?.rest('a');
    expect(second.rest('b')).toBe(false);
    first?.move();
    expect(second.rest('b')).toBe(true);
    expect(second.rest('b')).toBe(true);
    expect(budget.bytesHeld).toBe(80);
  });

  it('leave the room of small ones on their way as soon as they rest', async () => {
    const budget = new BodyBudget(MIXED);
    budget.count(60);
    const passing = [await taken(budget, 20), await taken(budget, 20)];
    expect(await budget.take(20, 0, never)).toBe('crowded');
    expect(passing[0]?.rest('a')).toBe(true);
    expect((await taken(budget, 20)).bytes).toBe(20);
  });
});

describe('small bodies and large ones', () => {
  it('are no burden to each other while nothing is free', async () => {
    const budget = new BodyBudget(MIXED);
    const waiting = [budget.tryTake(60), budget.count(10)];
    for (const one of waiting) one?.rest('a');
    const large = await taken(budget, 30);
    expect(await budget.take(30, 0, never)).toBe('crowded');
    const small = [await taken(budget, 20), await taken(budget, 20)];
    expect(await budget.take(20, 0, never)).toBe('crowded');
    large.release();
    expect((await taken(budget, 30)).bytes).toBe(30);
    small[0]?.release();
    expect((await taken(budget, 20)).bytes).toBe(20);
  });

  it('wait for as long as each of them may', async () => {
    const budget = new BodyBudget(MIXED);
    budget.count(100);
    for (const _ of [1, 2]) await taken(budget, 20);
    const ends: string[] = [];
    const wait = async (name: string, bytes: number, maxWaitMs: number): Promise<void> => {
      const end = await budget.take(bytes, maxWaitMs, never);
      ends.push(`${name} ${typeof end === 'string' ? end : 'taken'}`);
    };
    const waits = [
      wait('small', 20, Infinity),
      wait('large', 30, Infinity),
      wait('brief', 30, 500),
    ];
    await vi.advanceTimersByTimeAsync(500);
    expect(ends).toEqual(['brief crowded']);
    await vi.advanceTimersByTimeAsync(29_500);
    expect(ends).toEqual(['brief crowded', 'small crowded']);
    await vi.advanceTimersByTimeAsync(210_000);
    expect(ends).toHaveLength(3);
    await Promise.all(waits);
  });

  it('that turn out to be none leave the room of small ones, within two seconds', async () => {
    const budget = new BodyBudget(MIXED);
    const main = budget.count(100);
    const passing = [await taken(budget, 20), await taken(budget, 20)];
    const ends: string[] = [];
    for (const one of passing) one.grow(Infinity, never).then((end) => ends.push(end), fail);
    await vi.advanceTimersByTimeAsync(1_000);
    expect([ends, budget.bytesHeld]).toEqual([[], 140]);
    main.keep(10);
    await vi.advanceTimersByTimeAsync(500);
    expect([ends, budget.bytesHeld]).toEqual([['taken'], 10 + 86 + 20]);
    expect((await taken(budget, 20)).bytes).toBe(20);
    await vi.advanceTimersByTimeAsync(1_000);
    expect([ends, passing.map(({ bytes }) => bytes)]).toEqual([
      ['taken', 'crowded'],
      [86, 20],
    ]);
  });
});

describe('bodies of unknown length', () => {
  it('grow by as much as they have while there is room for the longest besides', async () => {
    const budget = new BodyBudget(MIXED);
    const one = await taken(budget, 5);
    for (const _ of [1, 2, 3]) expect(await one.grow(0, never)).toBe('taken');
    expect(one.bytes).toBe(20 + 66);
  });

  it.each([
    ['few', MIXED, 12, 5, 30],
    ['many', BODY_LIMITS, 90, 256 * 1_024, 20_000_000],
  ])('never wait for each other with a part of what there is: %s', async (_, limits, ...row) => {
    const [count, startBytes, bytes] = row;
    const budget = new BodyBudget(limits);
    const all = await Promise.all(Array.from({ length: count }, () => taken(budget, startBytes)));
    const isServed = async (one: Reservation): Promise<boolean> => {
      while (one.bytes < bytes) if ((await one.grow(Infinity, never)) !== 'taken') return false;
      expect(budget.bytesHeld).toBeLessThanOrEqual(limits.allBytes);
      one.release();
      return true;
    };
    const served = Promise.all(all.map(isServed));
    await vi.advanceTimersByTimeAsync(100_000);
    expect(new Set(await served)).toEqual(new Set([true]));
  });

  it('leave what there is to the one that goes before them', async () => {
    const budget = new BodyBudget(MIXED);
    const first = await taken(budget, 10);
    const second = await taken(budget, 5);
    const other = budget.count(20);
    expect(await first.grow(0, never)).toBe('taken');
    other.keep(5);
    expect(await second.grow(0, never)).toBe('crowded');
    expect(await first.grow(0, never)).toBe('taken');
    expect(budget.bytesHeld).toBe(100);
    first.release();
    expect(await second.grow(0, never)).toBe('taken');
  });

  it('take nothing from a large one before them', async () => {
    const budget = new BodyBudget(MIXED);
    const held = budget.count(20);
    const { order, wait } = recorder(budget);
    wait('large', 90);
    expect(await (await taken(budget, 5)).grow(0, never)).toBe('crowded');
    held.release();
    expect(order).toEqual([]);
  });
});

describe('what can be spared', () => {
  it('is given to who needs the room, the oldest first, and no more than that', async () => {
    const budget = new BodyBudget({ ...MIXED, freeBytes: 90 });
    const gone: string[] = [];
    for (const name of ['first', 'second', 'third']) {
      budget.tryTake(30)?.spare(() => gone.push(name));
    }
    expect(gone).toEqual([]);
    expect((await taken(budget, 25)).bytes).toBe(25);
    expect(gone).toEqual(['first']);
    expect(budget.bytesHeld).toBe(85);
  });

  it('is given up at once where nothing is free, unless it is a head', () => {
    const budget = new BodyBudget(MIXED);
    budget.count(61);
    let gone = 0;
    const spared = [budget.count(2), budget.count(1)];
    for (const one of spared) one.spare(() => (gone += 1));
    expect([gone, budget.bytesHeld]).toEqual([1, 62]);
  });

  it('is left to all who have it where it does not do', async () => {
    const budget = new BodyBudget({ ...MIXED, freeBytes: 90 });
    let gone = 0;
    for (const _ of [1, 2]) budget.tryTake(30)?.spare(() => (gone += 1));
    budget.count(30);
    expect(await budget.take(80, 0, never)).toBe('crowded');
    expect([gone, budget.bytesHeld]).toEqual([0, 90]);
    expect((await taken(budget, 70)).bytes).toBe(70);
    expect([gone, budget.bytesHeld]).toEqual([2, 100]);
  });

  it('is nobody else\u2019s once it is wanted again', async () => {
    const budget = new BodyBudget(MIXED);
    let gone = 0;
    const spared = budget.tryTake(50);
    spared?.spare(() => (gone += 1));
    spared?.unspare();
    expect(await budget.take(60, 0, never)).toBe('crowded');
    expect([gone, budget.bytesHeld]).toEqual([0, 50]);
    spared?.release();
  });
});

describe('the line of bodies that wait to be read', () => {
  it('serves waiters in order of arrival, one of few bytes never before one of many', async () => {
    const budget = new BodyBudget(LARGE);
    const held = await taken(budget, 90);
    const { order, wait } = recorder(budget);
    wait('many', 80);
    wait('few', 5);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(order).toEqual([]);
    held.release();
    await vi.advanceTimersByTimeAsync(50);
    expect(order).toEqual(['many', 'few']);
    expect(budget.bytesHeld).toBe(85);
  });

  it('lets one go before another where there is room for both', async () => {
    const budget = new BodyBudget(LARGE);
    const held = await taken(budget, 90);
    const { order, wait } = recorder(budget);
    wait('many', 40);
    await vi.advanceTimersByTimeAsync(10);
    held.keep(51);
    wait('too many', 10);
    wait('few', 9);
    await vi.advanceTimersByTimeAsync(0);
    expect(order).toEqual(['few']);
    await vi.advanceTimersByTimeAsync(25);
    expect(order).toEqual(['few', 'many']);
  });

  it('keeps no room for one that has none as long as others wait for their slots', async () => {
    const budget = new BodyBudget(MIXED);
    const resting = budget.tryTake(60);
    resting?.rest('saturated');
    const { order, wait } = recorder(budget);
    wait('too many', 70);
    wait('many', 30);
    await vi.advanceTimersByTimeAsync(50);
    expect(order).toEqual(['many']);
    resting?.release();
    await vi.advanceTimersByTimeAsync(50);
    expect(order).toEqual(['many', 'too many']);
  });

  it('serves everybody of a long line', async () => {
    const budget = new BodyBudget(LARGE);
    const held = await taken(budget, 100);
    const { order, wait, release } = recorder(budget);
    const names = Array.from({ length: 30 }, (_, index) => String(index));
    for (const name of names) wait(name, 100);
    held.release();
    for (const name of names) {
      await vi.advanceTimersByTimeAsync(300);
      expect(order.at(-1)).toBe(name);
      release(name);
    }
    expect(order).toEqual(names);
    expect(budget.bytesHeld).toBe(0);
  });

  it('lets a waiter leave at once, with nothing', async () => {
    const budget = new BodyBudget(LARGE);
    const held = await taken(budget, 100);
    const leaving = new AbortController();
    const gone = budget.take(50, Infinity, leaving.signal);
    const next = taken(budget, 100);
    leaving.abort();
    expect(await gone).toBe('left');
    held.release();
    await vi.advanceTimersByTimeAsync(25);
    expect((await next).bytes).toBe(100);
    expect(await budget.take(1, Infinity, leaving.signal)).toBe('left');
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([
    ['without a word', 0],
    ['and the wall clock is set back', 3_600_000],
  ])('passes over a waiter whose request died %s', async (_, setBackMs) => {
    const budget = new BodyBudget(LARGE);
    const held = await taken(budget, 100);
    // Its timer never fires again, as on Workers after the context has ended.
    vi.stubGlobal('setTimeout', () => 0);
    const dead = budget.take(100, Infinity, never);
    vi.unstubAllGlobals();
    const next = taken(budget, 100);
    vi.setSystemTime(Date.now() - setBackMs);
    held.release();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(budget.bytesHeld).toBe(0);
    await vi.advanceTimersByTimeAsync(1_500);
    (await next).release();
    expect((await taken(budget, 100)).bytes).toBe(100);
    const verdict = await Promise.race([dead, Promise.resolve('still waiting')]);
    expect(verdict).toBe('still waiting');
  });

  it('passes over any number of dead ones behind a first that finds no room', async () => {
    const budget = new BodyBudget(MIXED);
    budget.tryTake(60)?.rest('saturated');
    const { order, wait } = recorder(budget);
    wait('too many', 70);
    const held = await taken(budget, 40);
    vi.stubGlobal('setTimeout', () => 0);
    for (let dead = 0; dead < 40; dead += 1) wait('dead', 30);
    vi.unstubAllGlobals();
    wait('living', 30);
    held.release();
    await vi.advanceTimersByTimeAsync(2_300);
    expect(order).toEqual(['living']);
  });
});

async function lose(budget: BodyBudget): Promise<void> {
  const resting = await taken(budget, 20);
  resting.rest('pool');
  const spared = await taken(budget, 20);
  spared.spare(() => expect.unreachable('nobody is left to be told'));
  await taken(budget, 20);
  expect(budget.bytesHeld).toBe(60);
}

function recorder(budget: BodyBudget): {
  order: string[];
  wait: (name: string, bytes: number) => void;
  release: (name: string) => void;
} {
  const order: string[] = [];
  const held = new Map<string, Reservation>();
  return {
    order,
    wait(name, bytes) {
      taken(budget, bytes).then(
        (reservation) => {
          order.push(name);
          held.set(name, reservation);
        },
        () => order.push(`${name} failed`),
      );
    },
    release: (name) => held.get(name)?.release(),
  };
}

function fail(error: unknown): void {
  throw error;
}
