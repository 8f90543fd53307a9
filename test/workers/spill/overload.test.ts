// A group whose object is overloaded has no room for now: its calls go where the operator lets them go.
import { afterAll, afterEach, expect, it } from 'vitest';
import { mend, overload } from '../support/overload.ts';
import { nothingLeaks } from '../support/pool.ts';
import { newScene, served } from './scene.ts';

afterEach(() => mend());

afterAll(nothingLeaks);

it.each([
  ['at once', 0, [1, 1]],
  ['after it has waited there', 600, [2, Infinity]],
] as const)('a call goes elsewhere %s', async (_, after_ms, [attemptsMin, attemptsMax]) => {
  const at = await newScene({ spill: { spill_to: ['b'], after_ms } });
  const refused = overload(at.name('a'));
  const { by, headers } = await served(at);
  expect(by).toBe('b');
  expect(headers.get('headgate-groups')).toBe(at.name('b'));
  expect(refused.mock.calls.length).toBeGreaterThanOrEqual(attemptsMin);
  expect(refused.mock.calls.length).toBeLessThanOrEqual(attemptsMax);
  expect(Number(headers.get('headgate-wait-ms'))).toBeGreaterThanOrEqual(after_ms);
});
