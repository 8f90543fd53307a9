import { afterEach, beforeEach, describe, expect, it, type Mock, vi } from 'vitest';
import type { Env } from '../../../src/env.ts';
import {
  delayNewKey,
  delayUnknownKey,
  keepPlace,
  noteKeyAnswer,
  takeLeasePlace,
  takePlace,
} from '../../../src/call/identity/new-keys.ts';
import type { Placement } from '../../../src/routing/placement.ts';

/** Keys that somebody makes up: whoever sends many waits, and nobody else does. */
const FREE = 10;

const OWN = { group: 'auto:zai', partition: 'k1' } as Placement;

let addresses = 0;
let address: string;
let verified: Mock<() => Promise<boolean>>;

beforeEach(() => {
  vi.useFakeTimers();
  // The Worker remembers addresses for good, so each test has its own.
  address = `192.0.2.${(addresses += 1)}`;
  verified = vi.fn<() => Promise<boolean>>(() => Promise.resolve(false));
});

afterEach(() => {
  vi.useRealTimers();
});

interface CallNewKeysRequest {
  readonly request: Request;
  readonly env: Env;
}

function asked(from = address, signal?: AbortSignal): CallNewKeysRequest {
  const headers = { 'cf-connecting-ip': from };
  const request = new Request('https://gate.test/', { headers, ...(signal && { signal }) });
  const verifications = { getByName: () => ({ isVerified: verified }) };
  return { request, env: { TRIALS: verifications } as unknown as Env };
}

/** How long something takes on the clock of the test. */
async function msOf(work: Promise<unknown>): Promise<number> {
  const from = Date.now();
  let tookMs: number | null = null;
  const done = work.then(() => (tookMs = Date.now() - from));
  while (tookMs === null) await vi.advanceTimersByTimeAsync(10);
  await done;
  return tookMs;
}

const waitOf = (key: string, of = asked()): Promise<number> => msOf(delayNewKey(of, key, [OWN]));

function refuse(times: number, status = 401): void {
  for (let at = 0; at < times; at += 1) noteKeyAnswer(asked(), [`${address} ${at}`], status, true);
}

describe('a key that never had a success', () => {
  it('waits for nothing while its address had few refused', async () => {
    refuse(FREE);
    expect(await waitOf('new')).toBe(0);
    expect(verified).not.toHaveBeenCalled();
  });

  it('waits twice as long with each that is refused, up to a second', async () => {
    refuse(FREE);
    const waits: number[] = [];
    for (let more = 0; more < 6; more += 1) {
      refuse(1, more % 2 === 0 ? 401 : 403);
      waits.push(await waitOf(`new-${more}`));
    }
    expect(waits).toEqual([100, 200, 400, 800, 1_000, 1_000]);
  });

  it('does not wait at another address', async () => {
    refuse(FREE + 10);
    expect(await waitOf('new', asked('198.51.100.1'))).toBe(0);
  });

  it('does not wait a minute later', async () => {
    refuse(FREE + 10);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await waitOf('new')).toBe(0);
  });

  it('is let go when its caller leaves', async () => {
    refuse(FREE + 10);
    const caller = new AbortController();
    const waited = waitOf('new', asked(address, caller.signal));
    setTimeout(() => caller.abort(), 300);
    expect(await waited).toBe(300);
  });

  it.each([400, 404, 429, 500])('is not counted for a %i', async (status) => {
    refuse(FREE + 10, status);
    expect(await waitOf('new')).toBe(0);
  });
});

describe('a key that had a success', () => {
  it('never waits, whoever else comes from there', async () => {
    noteKeyAnswer(asked(), [`${address} good`], 200, true);
    refuse(FREE + 10);
    expect(await waitOf(`${address} good`)).toBe(0);
    expect(verified).not.toHaveBeenCalled();
  });

  it('never waits where its pool alone knows of it, which is asked once', async () => {
    verified.mockResolvedValue(true);
    refuse(FREE + 10);
    expect(await waitOf(`${address} good`)).toBe(0);
    expect(await waitOf(`${address} good`)).toBe(0);
    expect(verified).toHaveBeenCalledExactlyOnceWith(OWN);
  });

  it('is counted no more when it is refused', async () => {
    noteKeyAnswer(asked(), [`${address} good`], 200, true);
    for (let at = 0; at < FREE + 10; at += 1) {
      noteKeyAnswer(asked(), [`${address} good`], 401, true);
    }
    expect(await waitOf('new')).toBe(0);
  });

  it('is not one that a list of models was given to', async () => {
    noteKeyAnswer(asked(), [`${address} lists`], 200, false);
    refuse(FREE + 10);
    expect(await waitOf(`${address} lists`)).toBe(1_000);
  });
});

it('a pool that does not answer costs its key a second more, and no failure', async () => {
  verified.mockReturnValue(new Promise(() => undefined));
  refuse(FREE + 10);
  expect(await waitOf('new')).toBe(2_000);
});

it('gateway keys that nobody knows are counted and wait in the same way', async () => {
  const waits: number[] = [];
  for (let at = 0; at < FREE + 3; at += 1) waits.push(await msOf(delayUnknownKey(asked())));
  expect(waits).toEqual([...Array.from({ length: FREE }, () => 0), 100, 200, 400]);
});

describe('hosted by oneself', () => {
  const hosted = (clientIp: string | null): CallNewKeysRequest => {
    const { request, env } = asked();
    if (clientIp !== null) Object.defineProperty(request, 'cf', { value: { clientIp } });
    return { request, env: { ...env, BOOT_ID: 'b' } };
  };

  it('an address is what the forwarder says, whatever the caller writes', async () => {
    for (let at = 0; at < FREE + 10; at += 1) {
      noteKeyAnswer(hosted('203.0.113.1'), [`${address} ${at}`], 401, true);
    }
    expect(await waitOf('new', hosted('203.0.113.1'))).toBe(1_000);
    expect(await waitOf('new', hosted('203.0.113.2'))).toBe(0);
    expect(await waitOf('new', hosted(null))).toBe(0);
  });
});

describe('calls of keys that had no success', () => {
  const PLACES = 1_000;
  const PLACES_OF_WAITING = 500;
  const leaves: (() => void)[] = [];

  afterEach(() => {
    for (const leave of leaves.splice(0)) leave();
  });

  /** Whether the call of a key may go on; it is under way then. */
  function goesOn(key: string, of = asked()): boolean {
    const place = takePlace(of, `${address} ${key}`);
    if (place.kind === 'rejected') return false;
    leaves.push(place.leave);
    return true;
  }

  function callersAtOnce(keys: number, of = asked()): number {
    return Array.from({ length: keys }, (_, at) => goesOn(`made-up-${at}`, of)).filter(Boolean)
      .length;
  }

  it('are under way of so many keys at once, and of fewer where their address waits', () => {
    expect(callersAtOnce(PLACES + 100)).toBe(PLACES);
    for (const leave of leaves.splice(0)) leave();
    refuse(FREE + 1);
    expect(callersAtOnce(PLACES)).toBe(PLACES_OF_WAITING);
  });

  it('have room for who comes from elsewhere, however many wait', () => {
    refuse(FREE + 1);
    callersAtOnce(PLACES);
    expect(goesOn('new', asked('198.51.100.2'))).toBe(true);
  });

  it('have room for one that was told to come again, and comes', () => {
    refuse(FREE + 1);
    callersAtOnce(PLACES_OF_WAITING);
    const place = takePlace(asked(), `${address} new`);
    expect(place).toMatchObject({
      kind: 'rejected',
      reply: { reason: 'busy', retryAfterMs: 1_000 },
    });
    expect(goesOn('another')).toBe(false);
    expect(goesOn('new')).toBe(true);
  });

  it('are as many as there are of one key, and take one place', () => {
    refuse(FREE + 1);
    const calls = Array.from({ length: 3 * PLACES_OF_WAITING }, () => goesOn('one'));
    expect(calls).not.toContain(false);
    expect(callersAtOnce(PLACES)).toBe(PLACES_OF_WAITING - 1);
  });

  it('give their place back when the last one of the key has its answer', () => {
    refuse(FREE + 1);
    callersAtOnce(PLACES_OF_WAITING);
    goesOn('made-up-0');
    const [first, ...others] = leaves.splice(0);
    first?.();
    expect(goesOn('too-many')).toBe(false);
    others.at(-1)?.();
    expect(goesOn('next')).toBe(true);
    leaves.push(...others.slice(0, -1));
  });

  it('take no place where the key had a success', () => {
    noteKeyAnswer(asked(), [`${address} good`], 200, true);
    callersAtOnce(PLACES + 1);
    expect(goesOn('new')).toBe(false);
    expect(goesOn('good')).toBe(true);
  });
});

describe('leases of keys that had no success', () => {
  const LEASED_MAX = 500;
  const LEASE_MS = 45_000;

  /** Takes a lease for a key; whether it was allowed. */
  function leases(key: string): boolean {
    const place = takeLeasePlace(asked(), `${address} ${key}`);
    if (place.kind === 'rejected') return false;
    // A pool's clock cannot keep it for longer than a lease lasts.
    keepPlace(`${address} ${key}`, Infinity);
    place.leave();
    return true;
  }

  const callersAtOnce = (name: string): number =>
    Array.from({ length: 2 * LEASED_MAX }, (_, at) => leases(`${name}-${at}`)).filter(Boolean)
      .length;

  it('keep their places until they expire, and at most half of all places', () => {
    expect(callersAtOnce('first')).toBe(LEASED_MAX);
    expect(leases('first-0')).toBe(true);
    const call = takePlace(asked(), `${address} call`);
    expect(call.kind).toBe('taken');
    if (call.kind === 'taken') call.leave();
    vi.advanceTimersByTime(LEASE_MS - 1);
    expect(leases('second')).toBe(false);
    vi.advanceTimersByTime(1);
    expect(callersAtOnce('third')).toBe(LEASED_MAX);
    vi.advanceTimersByTime(LEASE_MS);
  });

  it('take no place where the key had a success', () => {
    noteKeyAnswer(asked(), [`${address} good`], 200, true);
    callersAtOnce('more');
    expect(leases('good')).toBe(true);
    vi.advanceTimersByTime(LEASE_MS);
  });
});

it('of gateway keys that nobody knows no more wait at once than a Worker can bear', async () => {
  for (let at = 0; at < FREE + 10; at += 1) await msOf(delayUnknownKey(asked()));
  const waiting = Array.from({ length: 500 }, () => delayUnknownKey(asked()));
  expect(await msOf(delayUnknownKey(asked()))).toBe(0);
  await msOf(Promise.all(waiting));
  expect(await msOf(delayUnknownKey(asked()))).toBe(1_000);
});
