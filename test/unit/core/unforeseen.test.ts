import { expect, test } from 'vitest';
import { TestGroup } from '../../support/core-builders.ts';

/** When a caller is told to come back where nobody knows how long it will last. */

function expectSpaced(group: TestGroup, names: readonly string[]): void {
  const reported = names.map((name) => group.rejection(name).retryAfterMs ?? NaN);
  for (const retry of reported) {
    expect(retry).toBeGreaterThanOrEqual(15_000);
    expect(retry).toBeLessThanOrEqual(22_500);
  }
}

test.each([
  ['a group that drains', { isDraining: true }, {}],
  ['a group that its operator has paused, to who cannot wait', { paused: true }, { wait: false }],
])('%s says 15 s at the least, and not the same to all', (_, settings, options) => {
  const group = new TestGroup(settings);
  const reported = ['a', 'b', 'c'].map((name) => {
    group.ask(name, options);
    expectSpaced(group, [name]);
    return group.rejection(name).retryAfterMs;
  });
  expect(new Set(reported).size).toBe(3);
});

test('who waited in vain in a paused group is told so too', () => {
  const group = new TestGroup({ paused: true, timeoutMs: 30_000 });
  group.ask('a', { sliceMs: 60_000 });
  expect(group.advance(30_000)).toEqual(['reject a paused']);
  expectSpaced(group, ['a']);
});
