import { beforeEach, describe, expect, test } from 'vitest';
import {
  allows,
  applySettings,
  closedBreaker,
  hasFailedLately,
  keepProbes,
  nextChangeAt,
  noteEnded,
  noteFailed,
  noteGranted,
  noteServed,
  type Breaker,
} from '../../../src/core/parts/breaker.ts';
import { instant, leaseId, type InstantMs } from '../../../src/core/words/ids.ts';
import { BREAKER_DEFAULTS, type BreakerSettings } from '../../../src/core/words/settings.ts';

const START = instant(9_000_000);

let breaker: Breaker;
let now: InstantMs;
let granted = 0;

beforeEach(() => {
  breaker = closedBreaker();
  now = START;
});

function advance(ms: number): void {
  now = instant(now + ms);
}

/** Grants a call, if the breaker allows it. */
function grant() {
  expect(allows(breaker, now)).toBe(true);
  const call = { leaseId: leaseId(`call-${granted++}.1`), grantedAt: now };
  noteGranted(breaker, call.leaseId);
  return call;
}

/** Calls that end at once: `s` is served, `f` fails. */
function calls(results: string): void {
  for (const result of results) {
    const call = grant();
    if (result === 's') noteServed(breaker, call, now);
    else noteFailed(breaker, { ...call, retryAfterMs: null }, now);
    advance(10);
  }
}

/** Opens the breaker and returns for how long. */
function open(retryAfterMs: number | null = null): number {
  calls('fffffffff');
  noteFailed(breaker, { ...grant(), retryAfterMs }, now);
  expect(breaker.phase).toBe('open');
  return breaker.openUntil - now;
}

describe('closed', () => {
  test.each([
    ['fffffffff', 'closed', 'too few results'],
    ['ffffffffff', 'open', 'ten of ten'],
    ['sssssfffff', 'open', 'half of ten'],
    ['ssssssffff', 'closed', 'less than half'],
    ['sssssssssssssssssssffffffffff', 'open', 'half of the last 20'],
    ['sssssssssssssssssssfffffffff', 'closed', 'less than half of the last 20'],
  ])('after %s it is %s: %s', (results, expected) => {
    calls(results);
    expect(breaker.phase).toBe(expected);
  });

  test('it forgets what is long ago', () => {
    calls('fffffffff');
    advance(300_000);
    calls('fffffffff');
    expect(breaker.phase).toBe('closed');
  });

  test('any number of calls may be under way', () => {
    for (let index = 0; index < 50; index += 1) grant();
    expect(nextChangeAt(breaker, now)).toBe(Infinity);
  });
});

describe('open', () => {
  test('nothing passes for 15 s, and up to a tenth longer', () => {
    const lengthMs = open();
    expect(lengthMs).toBeGreaterThanOrEqual(15_000);
    expect(lengthMs).toBeLessThanOrEqual(16_500);
    expect(nextChangeAt(breaker, now)).toBe(breaker.openUntil);
    advance(lengthMs - 1);
    expect(allows(breaker, now)).toBe(false);
    advance(1);
    expect(allows(breaker, now)).toBe(true);
  });

  test('how much longer depends on the instant', () => {
    const lengths = Array.from({ length: 20 }, () => {
      breaker = closedBreaker();
      advance(1_234);
      return open();
    });
    expect(new Set(lengths).size).toBeGreaterThan(15);
  });

  test('it leaves the upstream alone as long as that says', () => {
    expect(open(90_000)).toBe(90_000);
  });

  test('each failed probe doubles the time, up to 5 min', () => {
    open();
    for (const lengthMs of [30_000, 60_000, 120_000, 240_000, 300_000, 300_000]) {
      now = breaker.openUntil;
      noteFailed(breaker, { ...grant(), retryAfterMs: null }, now);
      expect(breaker.openUntil - now).toBeGreaterThanOrEqual(lengthMs);
      expect(breaker.openUntil - now).toBeLessThanOrEqual(1.1 * lengthMs);
    }
  });

  test('calls of before change nothing', () => {
    const [served, failed] = [grant(), grant()];
    open();
    const { openUntil } = breaker;
    noteServed(breaker, served, now);
    noteFailed(breaker, { ...failed, retryAfterMs: 80_000 }, now);
    noteEnded(breaker, failed.leaseId, true, now);
    expect(breaker).toMatchObject({ phase: 'open', openUntil });
  });
});

describe('half open', () => {
  beforeEach(() => {
    open();
    now = breaker.openUntil;
  });

  test('one probe passes, and three at once when it was served', () => {
    const first = grant();
    expect(breaker.phase).toBe('half_open');
    expect(allows(breaker, now)).toBe(false);
    noteServed(breaker, first, now);
    for (let index = 0; index < 3; index += 1) grant();
    expect(allows(breaker, now)).toBe(false);
  });

  test('three served probes close it, while their bodies go on', () => {
    for (let index = 0; index < 3; index += 1) noteServed(breaker, grant(), now);
    expect(breaker.phase).toBe('closed');
    expect(breaker.probes).toEqual([]);
    for (let index = 0; index < 9; index += 1) grant();
  });

  test('one failed probe opens it, whatever was served', () => {
    calls('ss');
    const [late, failed] = [grant(), grant()];
    noteFailed(breaker, { ...failed, retryAfterMs: null }, now);
    expect(breaker.phase).toBe('open');
    noteServed(breaker, late, now);
    expect(breaker.served).toBe(0);
  });

  test('a probe that ended without a result gives its permit back', () => {
    for (let index = 0; index < 10; index += 1) {
      const probe = grant();
      expect(allows(breaker, now)).toBe(false);
      noteEnded(breaker, probe.leaseId, false, now);
    }
    expect(breaker.phase).toBe('half_open');
    calls('sss');
    expect(breaker.phase).toBe('closed');
  });

  test('a probe whose holder was lost has failed', () => {
    noteEnded(breaker, grant().leaseId, true, now);
    expect(breaker.phase).toBe('open');
    expect(breaker.probes).toEqual([]);
  });

  test('the end of a call that was served changes nothing', () => {
    const probe = grant();
    noteServed(breaker, probe, now);
    noteEnded(breaker, probe.leaseId, true, now);
    expect(breaker).toMatchObject({ phase: 'half_open', served: 1 });
  });

  test('a served probe that fails in its answer opens it again', () => {
    const probe = grant();
    noteServed(breaker, probe, now);
    advance(1_000);
    noteFailed(breaker, { ...probe, retryAfterMs: null }, now);
    expect(breaker).toMatchObject({ phase: 'open', served: 0, probes: [] });
    expect(breaker.openUntil - now).toBeGreaterThanOrEqual(30_000);
    // Neither a second word about it nor a report of a lease holder opens it for longer.
    const { openUntil } = breaker;
    now = openUntil;
    const next = grant();
    noteFailed(breaker, { ...probe, retryAfterMs: null }, now);
    noteServed(breaker, next, now);
    noteFailed(breaker, { ...next, retryAfterMs: null, isReported: true }, now);
    expect(breaker).toMatchObject({ phase: 'half_open', openUntil });
  });

  test('a probe counts once', () => {
    const probe = grant();
    for (let index = 0; index < 3; index += 1) noteServed(breaker, probe, now);
    expect(breaker.served).toBe(1);
  });

  test('after a reset only probes that are still there hold permits', () => {
    noteServed(breaker, grant(), now);
    const [gone, there] = [grant(), grant()];
    breaker = JSON.parse(JSON.stringify(breaker)) as Breaker;
    keepProbes(breaker, (id) => id !== gone.leaseId);
    expect(breaker.probes).toEqual([there.leaseId]);
  });
});

test('once closed it opens for 15 s again, and late results of before do not count', () => {
  const late = Array.from({ length: 10 }, () => grant());
  open();
  now = breaker.openUntil;
  calls('sss');
  for (const call of late) noteFailed(breaker, { ...call, retryAfterMs: null }, now);
  expect(breaker.phase).toBe('closed');
  expect(open()).toBeLessThanOrEqual(16_500);
});

describe('its settings', () => {
  const STRICT = {
    ...BREAKER_DEFAULTS,
    failedShare: 0.2,
    callsMin: 3,
    windowMs: 2_000,
    openMs: 500,
  };

  /** Calls that end at once, as `calls`, with settings. */
  function callsWith(settings: BreakerSettings, results: string): void {
    for (const result of results) {
      const call = grant();
      if (result === 's') noteServed(breaker, call, now, settings);
      else noteFailed(breaker, { ...call, retryAfterMs: null }, now, settings);
      advance(10);
    }
  }

  test.each([
    ['ff', 'closed', 'fewer calls than it needs'],
    ['ssf', 'open', 'a third of three calls'],
    ['sssssf', 'closed', 'a sixth of six calls'],
  ])('after %s it is %s: %s', (results, expected) => {
    callsWith(STRICT, results);
    expect(breaker.phase).toBe(expected);
  });

  test('say how long a result counts', () => {
    callsWith(STRICT, 'ff');
    expect(hasFailedLately(breaker, now, STRICT)).toBe(true);
    advance(2_000);
    expect(hasFailedLately(breaker, now, STRICT)).toBe(false);
    callsWith(STRICT, 'f');
    expect(breaker.phase).toBe('closed');
  });

  test('say how many calls it needs, also more than it keeps otherwise', () => {
    const patient = { ...BREAKER_DEFAULTS, callsMin: 50 };
    callsWith(patient, 'f'.repeat(49));
    expect(breaker.phase).toBe('closed');
    callsWith(patient, 'f');
    expect(breaker.phase).toBe('open');
  });

  test('say how long it stays open, at first and at most', () => {
    const held = { ...STRICT, openMsMax: 1_500 };
    callsWith(held, 'ff');
    const lengths: number[] = [];
    noteFailed(breaker, { ...grant(), retryAfterMs: null }, now, held);
    for (let probe = 0; probe < 4; probe += 1) {
      lengths.push(Math.floor((breaker.openUntil - now) / 1.1));
      now = breaker.openUntil;
      noteFailed(breaker, { ...grant(), retryAfterMs: null }, now, held);
    }
    for (const [index, ms] of [500, 1_000, 1_500, 1_500].entries()) {
      expect(lengths[index]).toBeGreaterThan(ms / 1.2);
      expect(lengths[index]).toBeLessThanOrEqual(ms);
    }
  });

  test('disable it: it never opens, and closes if it is open', () => {
    const off = { ...BREAKER_DEFAULTS, failedShare: Infinity };
    callsWith(off, 'f'.repeat(100));
    expect(breaker.phase).toBe('closed');
    breaker = closedBreaker();
    open();
    applySettings(breaker, BREAKER_DEFAULTS);
    expect(breaker.phase).toBe('open');
    applySettings(breaker, off);
    expect(breaker).toEqual(closedBreaker());
  });
});
