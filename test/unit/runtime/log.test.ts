// Log lines: an event of a lasting state is logged at intervals, with a count of the lines left out.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { logEvent } from '../../../src/runtime/log.ts';

let lines: string[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  lines = [];
  vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

interface RuntimeLogLine {
  readonly error: string;
  readonly left_out?: number;
}

const written = (): unknown[] => lines.map((line) => JSON.parse(line) as unknown);

it('an event that repeats while a state lasts is logged once in ten seconds, with a count of the others', () => {
  for (let at = 0; at < 400; at += 1) {
    logEvent('directory_unreachable', { error: `Error ${at}` });
    vi.advanceTimersByTime(50);
  }
  const [first, second, ...more] = written() as RuntimeLogLine[];
  expect(first).toEqual({ event: 'directory_unreachable', level: 'warn', error: 'Error 0' });
  const at = Number(second?.error.slice('Error '.length));
  expect(at).toBeGreaterThan(150);
  expect(second?.left_out).toBe(at - 1);
  expect(more.length).toBeLessThan(2);
  const leftOut = 400 - 1 - (more[0] === undefined ? at : Number(more[0].error.slice(6)));
  vi.advanceTimersByTime(60_000);
  logEvent('directory_unreachable', { error: 'later' });
  expect(written().at(-1)).toMatchObject({ error: 'later', left_out: leftOut });
  vi.advanceTimersByTime(60_000);
  logEvent('directory_unreachable', { error: 'much later' });
  expect(written().at(-1)).not.toHaveProperty('left_out');
});

it('each of those events is counted separately, and other events are always logged', () => {
  for (let at = 0; at < 3; at += 1) {
    logEvent('admin_error', { name: 'Error' });
    logEvent('snapshot_unwritten', { error: 'Error' });
    logEvent('operator_act', { actor: 'ann', action: 'config: import', version: at });
    logEvent('upstream_refused', { upstream: 'up' });
    logEvent('internal_error', { name: 'TypeError' });
  }
  const events = written().map((line) => (line as { readonly event: string }).event);
  const countOf = (name: string): number => events.filter((event) => event === name).length;
  expect([countOf('admin_error'), countOf('snapshot_unwritten')]).toEqual([1, 1]);
  for (const name of ['operator_act', 'upstream_refused', 'internal_error']) {
    expect(countOf(name)).toBe(3);
  }
});
