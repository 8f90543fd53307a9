import { expect, test } from 'vitest';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** Calls that the upstream refused, between its answer and the end of their leases. */

const names = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `call-${index}`);

function burst(accepted: number, refused: number): { group: TestGroup; refused: string[] } {
  const group = new TestGroup({ slotsMax: 64, isAdaptive: true });
  const all = names(accepted + refused);
  group.askAll(...all);
  return { group, refused: all.slice(accepted) };
}

test('are not in flight any more: a burst that is reported before it ends leaves what was accepted', () => {
  const { group, refused } = burst(4, 60);
  for (const name of refused) group.report(name, { kind: 'concurrency' });
  expect(group.state.controls.ceiling.slots).toBe(4);
  for (const name of refused) group.release(name, 'failed');
  expect(group.state.controls.ceiling.slots).toBe(4);
  expect(group.state.slotsRefused).toBe(0);
});

test('count once, however often their refusal is reported', () => {
  const { group } = burst(4, 2);
  group.report('call-4', { kind: 'concurrency' });
  group.report('call-4', { kind: 'concurrency' });
  expect(group.state.slotsRefused).toBe(1);
  expect(group.state.controls.ceiling.slots).toBe(5);
});

test('count neither as refused nor as waiting elsewhere twice', () => {
  const group = new TestGroup({ slotsMax: 8, isAdaptive: true });
  group.ask('served');
  group.ask('call', { waitsElsewhere: true });
  group.report('call', { kind: 'concurrency' });
  expect(group.state).toMatchObject({ slotsRefused: 1, slotsWaitingElsewhere: 0 });
  expect(group.state.controls.ceiling.slots).toBe(1);
});

test.each([
  ['are released', (group: TestGroup) => group.release('call-1', 'failed')],
  ['are released without a cooldown', (group: TestGroup) => group.release('call-1', 'unused')],
  ['lapse', (group: TestGroup) => group.advance(LEASE_TTL_MS)],
])('are forgotten when they %s', (_how, end) => {
  const { group } = burst(1, 1);
  group.report('call-1', { kind: 'concurrency' });
  expect(group.state.slotsRefused).toBe(1);
  end(group);
  expect(group.state.slotsRefused).toBe(0);
});

test('are in flight where the upstream says that it took them', () => {
  const { group } = burst(1, 1);
  group.report('call-1', { kind: 'served' });
  expect(group.state.slotsRefused).toBe(0);
});
