import { expect, test } from 'vitest';
import { TestGroup } from '../../support/core-builders.ts';

/** First come, first served, by the time at which a call reached Headgate. */

/** A group whose only slot is taken. */
function fullGroup(): TestGroup {
  const group = new TestGroup({ slotsMax: 1 });
  group.ask('holder');
  group.advance(100);
  return group;
}

test('waiters are granted in the order of their time, not of their arrival', () => {
  const group = fullGroup();
  group.ask('third', { enqueuedMs: 30 });
  group.ask('first', { enqueuedMs: 10 });
  group.ask('second', { enqueuedMs: 20 });
  expect(group.waiting()).toEqual(['first', 'second', 'third']);
  expect(group.release('holder')).toContain('grant first.1');
  expect(group.release('first')).toContain('grant second.1');
});

test('waiters of the same instant are granted in the order of their arrival', () => {
  const group = fullGroup();
  for (const name of ['a', 'b', 'c']) group.ask(name, { enqueuedMs: 50 });
  expect(group.waiting()).toEqual(['a', 'b', 'c']);
});

test('a ticket that comes back after a reset takes its old place', () => {
  const group = fullGroup();
  group.ask('old', { enqueuedMs: 10 });
  group.ask('young', { enqueuedMs: 20 });
  const next = group.reset();
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
  const [waiter] = group.state.queue.line;
  expect(waiter?.ticket.enqueuedAt).toBe(group.now - 60_000);
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
