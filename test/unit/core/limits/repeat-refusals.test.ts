import { beforeEach, describe, expect, test } from 'vitest';
import { TestGroup } from '../../../support/core-builders.ts';

/** Calls that the upstream refuses for concurrency again and again, because it takes fewer than it did. */

/** How often a call goes back into the queue. */
const REENTRIES_MAX = 3;

let group: TestGroup;
/** The next attempt of each call that was refused. */
let attempts: Map<string, number>;

beforeEach(() => {
  group = new TestGroup({ slotsMax: 4, timeoutMs: 600_000 });
  group.askAll('a', 'b', 'c', 'd');
  attempts = new Map();
});

/** The upstream refuses a call that was granted, which asks again. Returns who is granted now. */
function refuse(name: string): string[] {
  const attempt = attempts.get(name) ?? 1;
  attempts.set(name, attempt + 1);
  group.advance(10);
  group.report(name, { kind: 'concurrency' }, attempt > 1, attempt);
  const enqueuedMs = 0;
  const after = group.release(name, 'failed', attempt);
  return [...after, ...group.ask(name, { attempt: attempt + 1, enqueuedMs })].filter((answer) =>
    answer.startsWith('grant '),
  );
}

/** Somebody's call ends, as one does that was there before. */
function end(name: string): string[] {
  group.advance(1_000);
  return group.release(name).filter((answer) => answer.startsWith('grant '));
}

/** Takes a call as often as it is granted, and refuses it each time. */
function refuseAll(granted: string[]): void {
  for (let next = granted; next.length > 0;) {
    next = next.flatMap((answer) => refuse(/^grant (.*)\.\d+$/.exec(answer)?.[1] ?? ''));
  }
}

/** Two calls wait, and the older of them is refused at each of its first two turns. */
function refuseOldTwice(): void {
  group.ask('old', { enqueuedMs: 0 });
  group.ask('young', { enqueuedMs: 1 });
  end('a');
  refuse('old');
  end('b');
  refuse('old');
}

describe('a call that was refused', () => {
  test('once keeps its place', () => {
    group.ask('old', { enqueuedMs: 0 });
    group.ask('young', { enqueuedMs: 1 });
    expect(end('a')).toEqual(['grant old.1']);
    refuse('old');
    expect(end('b')).toEqual(['grant old.2']);
  });

  test('twice lets those go first who were refused less often', () => {
    refuseOldTwice();
    expect(end('c')).toEqual(['grant young.1']);
    refuse('young');
    expect(end('d')).toEqual(['grant young.2']);
  });

  test('keeps its place when a call was served that was granted since', () => {
    refuseOldTwice();
    group.ask('younger', { enqueuedMs: 2 });
    expect(end('c')).toEqual(['grant young.1']);
    group.advance(1);
    group.report('young', { kind: 'served' });
    expect(end('d')).toEqual(['grant old.3']);
  });

  test('keeps it too when that is only known at the end of the call', () => {
    refuseOldTwice();
    group.ask('younger', { enqueuedMs: 2 });
    expect(end('c')).toEqual(['grant young.1']);
    expect(end('young')).toEqual(['grant old.3']);
  });

  test('keeps it too when an operator has what was learned forgotten', () => {
    refuseOldTwice();
    expect(group.send({ kind: 'relearn' })[0]).toBe('grant old.3');
  });

  test('is not let go by one that was granted before', () => {
    refuseOldTwice();
    group.report('d', { kind: 'served' });
    expect(end('c')).toEqual(['grant young.1']);
  });

  test('goes where nobody else waits', () => {
    group.ask('old', { enqueuedMs: 0 });
    for (const name of ['a', 'b', 'c']) {
      expect(end(name)).toHaveLength(1);
      refuse('old');
    }
    expect(end('d')).toEqual(['grant old.4']);
  });
});

test('while what an upstream takes falls from 8 to 2 beneath long calls, none is refused four times', () => {
  group = new TestGroup({ slotsMax: 8, timeoutMs: 600_000 });
  // Ten agents: whose call has ended sends the next.
  const running = Array.from({ length: 8 }, (_, at) => `long-${at}`);
  group.askAll(...running);
  group.askAll('next-0', 'next-1');
  for (const [at, name] of running.slice(0, 6).entries()) {
    refuseAll(end(name));
    refuseAll(group.ask(`next-${at + 2}`));
  }
  // Two are left, which is what it takes. When the next one ends there is room.
  const [granted] = end('long-6');
  expect(granted).toBeDefined();
  expect(attempts.size).toBeGreaterThan(2);
  expect(Math.max(...attempts.values()) - 1).toBeLessThanOrEqual(REENTRIES_MAX);
});

test('what is remembered of refused calls is bounded', () => {
  group = new TestGroup({ slotsMax: 2, isAdaptive: false });
  group.ask('kept');
  for (let at = 0; at < 2_500; at += 1) {
    group.ask(`call-${at}`);
    group.report(`call-${at}`, { kind: 'concurrency' });
    group.release(`call-${at}`, 'failed');
  }
  expect(group.state.repeatRefusals.refusals.size).toBeLessThanOrEqual(1_000);
});
