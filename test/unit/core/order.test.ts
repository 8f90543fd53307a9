import { describe, expect, test } from 'vitest';
import { AGENT_FORGOTTEN_MS } from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** Turns among the calls of one tenant: by age, which is by arrival unless a run is older. */

/** A group whose only slot is taken. */
function fullGroup(changes: ConstructorParameters<typeof TestGroup>[0] = {}): TestGroup {
  const group = TestGroup.stored({ slotsMax: 1, timeoutMs: 600_000, ...changes });
  group.ask('holder');
  group.advance(100);
  return group;
}

describe('calls without an agent', () => {
  test('are granted in the order of their time, not of their arrival', () => {
    const group = fullGroup();
    group.ask('third', { enqueuedMs: 30 });
    group.ask('first', { enqueuedMs: 10 });
    group.ask('second', { enqueuedMs: 20 });
    expect(group.waiting()).toEqual(['first', 'second', 'third']);
    expect(group.release('holder')).toContain('grant first.1');
    expect(group.release('first')).toContain('grant second.1');
  });

  test('of the same instant are granted in the order of their arrival', () => {
    const group = fullGroup();
    for (const name of ['a', 'b', 'c']) group.ask(name, { enqueuedMs: 50 });
    expect(group.waiting()).toEqual(['a', 'b', 'c']);
  });

  test('gain nothing from a claim about an agent', () => {
    const group = fullGroup();
    group.ask('a', { enqueuedMs: 10 });
    group.ask('claims', { enqueuedMs: 20, agentMs: -900_000 });
    expect(group.waiting()).toEqual(['a', 'claims']);
  });
});

test('a ticket that comes back after a reset takes its old place', () => {
  const group = fullGroup();
  group.ask('old', { enqueuedMs: 10 });
  group.ask('young', { enqueuedMs: 20 });
  const next = group.restart();
  next.ask('young', { enqueuedMs: 20 });
  next.ask('old', { enqueuedMs: 10 });
  expect(next.waiting()).toEqual(['old', 'young']);
});

test('a claim to come from the future is a place behind those who are here', () => {
  const group = fullGroup();
  group.ask('claims', { enqueuedMs: 5_000 });
  group.ask('honest');
  group.advance(2);
  group.ask('later');
  expect(group.waiting()).toEqual(['honest', 'claims', 'later']);
});

test('a claim from the far past is worth the time-out of the group, and ends at once', () => {
  const group = fullGroup();
  group.ask('claims', { enqueuedMs: -999_999_999 });
  const [waiter] = group.state.queue.byTicket.values();
  expect(waiter?.ticket.enqueuedAt).toBe(group.now - 600_000);
  expect(group.tick()).toEqual(['reject claims queue_timeout']);
});

test('a waiter whose caller is not there does not bar those behind it', () => {
  const group = fullGroup();
  group.ask('away', { sliceMs: 100 });
  group.ask('here');
  group.advance(100);
  expect(group.release('holder')).toContain('grant here.1');
  expect(group.waiting()).toEqual(['away']);
});

test('of tenants that are level the one goes whose ready call is the oldest', () => {
  const group = new TestGroup({ slotsMax: 0 });
  group.ask('away', { tenant: 'ann', sliceMs: 100 });
  group.advance(10);
  group.ask('mid', { tenant: 'bob' });
  group.advance(10);
  group.ask('young', { tenant: 'ann' });
  group.advance(90);
  expect(group.reconfigure({ slotsMax: 1 })).toEqual(['grant mid.1']);
});

describe('the call of an older run', () => {
  /** `young` came first; `old` came that much later, of a run that began ten minutes before. */
  function order(ageCreditMs: number | null, laterMs: number): string[] {
    const group = new TestGroup({ slotsMax: 0, timeoutMs: 600_000, ageCreditMs });
    group.ask('young', { agent: 'young', agentMs: 0, sliceMs: 600_000 });
    group.advance(laterMs);
    group.ask('old', { agent: 'old', agentMs: -600_000 });
    return group.waiting();
  }

  test('goes before one that came less than the credit earlier', () => {
    expect(order(120_000, 119_999)).toEqual(['old', 'young']);
  });

  test('does not go before one that came earlier by the credit or more', () => {
    expect(order(120_000, 120_000)).toEqual(['young', 'old']);
    expect(order(120_000, 120_001)).toEqual(['young', 'old']);
  });

  test('waits its turn with a credit of 0', () => {
    expect(order(0, 1)).toEqual(['young', 'old']);
  });

  test('always goes first without a bound', () => {
    expect(order(null, 300_000)).toEqual(['old', 'young']);
  });

  test('counts as old as its run, if that is younger than the credit', () => {
    const group = fullGroup();
    group.ask('a', { agent: 'a', agentMs: 50, enqueuedMs: 90 });
    group.ask('b', { agent: 'b', agentMs: 40, enqueuedMs: 95 });
    expect(group.waiting()).toEqual(['b', 'a']);
  });

  test('does not go before another tenant that has had less', () => {
    const group = fullGroup();
    group.ask('mine', { tenant: 'holds-nothing' });
    group.ask('old', { agent: 'old', agentMs: -600_000 });
    expect(group.release('holder', 'cancelled')).toContain('grant mine.1');
  });
});

describe('a false claim of when a run began', () => {
  test.each([
    ['the future', 999_999_999, ['honest', 'claims']],
    ['the far past', -999_999_999, ['claims', 'honest']],
  ])('in %s is worth no more than the arrival, or the credit', (_when, agentMs, expected) => {
    const group = new TestGroup({ slotsMax: 0, timeoutMs: 600_000 });
    const sliceMs = 600_000;
    group.ask('honest', { sliceMs, agent: 'honest', agentMs: 0 });
    group.advance(10);
    group.ask('claims', { sliceMs, agent: 'claims', agentMs });
    expect(group.waiting()).toEqual(expected);
    group.advance(150_000);
    // Whatever it claims, nobody who came earlier by more than the credit stands behind it.
    group.ask('claims again', { agent: 'claims', agentMs });
    expect(group.waiting()).toEqual([...expected, 'claims again']);
  });
});

describe('a run that is known by its id only', () => {
  test('began when the group first saw it', () => {
    const group = fullGroup();
    group.ask('early', { agent: 'run' });
    group.cancel('early');
    group.advance(30_000);
    group.ask('other', { agent: 'other', enqueuedMs: 20_000 });
    group.ask('late', { agent: 'run' });
    expect(group.waiting()).toEqual(['late', 'other']);
  });

  test.each([
    [900_000, ['late', 'other']],
    [900_001, ['other', 'late']],
  ])('began anew after 15 minutes without a call: %i ms', (ms, expected) => {
    const group = new TestGroup({ slotsMax: 0, timeoutMs: 3_600_000, ageCreditMs: null });
    group.ask('early', { agent: 'run' });
    group.cancel('early');
    group.advance(ms);
    group.ask('other', { agent: 'other', enqueuedMs: 50_000 });
    group.ask('late', { agent: 'run' });
    expect(group.waiting()).toEqual(expected);
  });

  describe('goes on for longer than it is remembered without a call', () => {
    const LONG_MS = AGENT_FORGOTTEN_MS + 30_000;
    const JUST_BEFORE = { agent: 'other', enqueuedMs: LONG_MS - 5_000 };

    /** Passes the time, with something to do every 30 s. */
    function pass(group: TestGroup, meanwhile: () => void): void {
      for (let passedMs = 0; passedMs < LONG_MS; passedMs += 30_000) {
        group.advance(30_000);
        meanwhile();
      }
    }

    test('while it waits', () => {
      const group = new TestGroup({ slotsMax: 1, timeoutMs: 3_600_000 });
      group.ask('holder');
      group.ask('first', { agent: 'run', sliceMs: 50_000 });
      pass(group, () => {
        group.renew('holder');
        group.ask('first', { agent: 'run', sliceMs: 50_000 });
      });
      group.ask('other', JUST_BEFORE);
      group.ask('second', { agent: 'run' });
      expect(group.waiting()).toEqual(['first', 'second', 'other']);
    });

    test('while it is parked in one long ask', () => {
      const group = new TestGroup({ slotsMax: 0, timeoutMs: 3_600_000 });
      group.ask('first', { agent: 'run', sliceMs: 3_600_000 });
      group.advance(LONG_MS);
      group.ask('other', JUST_BEFORE);
      group.ask('second', { agent: 'run' });
      expect(group.waiting()).toEqual(['first', 'second', 'other']);
    });

    test('after a long ask that was granted', () => {
      const group = new TestGroup({ slotsMax: 0, timeoutMs: 3_600_000 });
      group.ask('first', { agent: 'run', sliceMs: 3_600_000 });
      group.advance(LONG_MS);
      group.reconfigure({ slotsMax: 1 });
      group.release('first');
      group.reconfigure({ slotsMax: 0 });
      group.ask('other', JUST_BEFORE);
      group.ask('second', { agent: 'run' });
      expect(group.waiting()).toEqual(['second', 'other']);
    });

    test('while it holds', () => {
      const group = new TestGroup({ slotsMax: 1, timeoutMs: 3_600_000 });
      group.ask('first', { agent: 'run' });
      pass(group, () => group.renew('first'));
      group.ask('other', JUST_BEFORE);
      group.ask('second', { agent: 'run' });
      expect(group.waiting()).toEqual(['second', 'other']);
    });
  });

  test('is another one with another tenant', () => {
    const group = fullGroup();
    group.ask('early', { agent: 'run', tenant: 'another' });
    group.advance(30_000);
    group.ask('other', { agent: 'other', enqueuedMs: 20_000 });
    group.ask('late', { agent: 'run' });
    expect(group.waiting().filter((name) => name !== 'early')).toEqual(['other', 'late']);
  });

  test('begins as early as its first call says after a reset', () => {
    const next = fullGroup().restart();
    next.ask('other', { agent: 'other', enqueuedMs: 60 });
    next.ask('second', { agent: 'run', enqueuedMs: 90 });
    next.ask('first', { agent: 'run', enqueuedMs: 10 });
    next.ask('third', { agent: 'run', enqueuedMs: 95 });
    expect(next.waiting()).toEqual(['first', 'third', 'other', 'second']);
  });
});
