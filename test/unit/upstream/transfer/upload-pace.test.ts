import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { onTimer, steadyClock } from '../../../../src/runtime/async.ts';
import { UploadPace } from '../../../../src/upstream/transfer/watched-pipe.ts';

/** How long a caller may take to send, by a mocked clock. */
const STALLED_MS = 10_000;
const RATE = 1_000;

beforeEach(() => {
  vi.useFakeTimers();
  // Tests share the clock, and another one may have left it up to a second ahead: it would stand still until then.
  vi.setSystemTime(steadyClock.now() - steadyClock.aheadMs);
});

afterEach(() => {
  vi.useRealTimers();
});

function paceWith(stalledMs: number | null = STALLED_MS, uploadMinBytesPerS = RATE) {
  const onOver = vi.fn<() => void>();
  const pace = new UploadPace({ stalledMs, uploadMinBytesPerS, after: onTimer, onOver });
  /** Sends pieces, each after a delay, and returns when the caller was found too slow. */
  const send = (pieces: readonly { readonly afterMs: number; readonly bytes: number }[]) => {
    const from = Date.now();
    for (const { afterMs, bytes } of pieces) {
      pace.begin();
      for (let ms = 0; ms < afterMs; ms += 100) {
        vi.advanceTimersByTime(Math.min(100, afterMs - ms));
        if (onOver.mock.calls.length > 0) return Date.now() - from;
      }
      pace.got(bytes);
    }
    return null;
  };
  return { pace, send, onOver };
}

const times = (count: number, afterMs: number, bytes: number) =>
  Array.from({ length: count }, () => ({ afterMs, bytes }));

describe('a caller is too slow', () => {
  it('that stops, whatever it has sent before', () => {
    const { send } = paceWith();
    expect(send([...times(5, 100, 1_000_000), ...times(1, 60_000, 1)])).toBe(500 + STALLED_MS);
  });

  it('that drips, little later than one that stops', () => {
    const { send } = paceWith();
    const overMs = send(times(1_000, 100, 1));
    expect(overMs).toBeGreaterThan(STALLED_MS);
    expect(overMs).toBeLessThan(STALLED_MS * 1.05);
  });

  it('that sends bursts far apart', () => {
    const { send } = paceWith();
    // A third of the rate, each pause shorter than it may be.
    expect(send(times(100, 9_000, 3_000))).toBeLessThan(20_000);
  });
});

describe('a caller is fast enough', () => {
  it.each([
    ['that sends at the rate', times(200, 100, 100)],
    ['that pauses and catches up', times(50, 9_000, 9_000)],
    ['that is a little slower, and soon done', times(90, 1_000, 900)],
  ])('%s', (_what, pieces) => {
    expect(paceWith().send(pieces)).toBeNull();
  });

  it('while the upstream does not read', () => {
    const { pace, send, onOver } = paceWith();
    expect(send(times(10, 100, 1_000))).toBeNull();
    vi.advanceTimersByTime(600_000);
    expect(onOver).not.toHaveBeenCalled();
    expect(send(times(10, 9_000, 9_000))).toBeNull();
    pace.stop();
  });

  it('at any rate if the minimum is 0 and it does not pause', () => {
    expect(paceWith(STALLED_MS, 0).send(times(100, 9_900, 1))).toBeNull();
    expect(paceWith(STALLED_MS, 0).send(times(1, 60_000, 1))).toBe(STALLED_MS);
  });

  it('without a limit', () => {
    expect(paceWith(null).send(times(3, 600_000, 1))).toBeNull();
  });

  it('once it is done', () => {
    const { pace, onOver } = paceWith();
    pace.begin();
    pace.stop();
    vi.advanceTimersByTime(600_000);
    expect(onOver).not.toHaveBeenCalled();
  });
});
