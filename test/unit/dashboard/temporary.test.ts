import { describe, expect, it } from 'vitest';
import { backPatch, stateEnd, typedEnd } from '../../../dashboard/src/model/temporary.ts';

const until = '2026-11-24T09:00:00.000Z';
const field = (name: string, from: unknown, to: unknown) => ({
  field: name,
  from,
  to,
  until,
  actor: 'x',
});

describe('what holds for a while', () => {
  it('gives a pause its end, and no other state that of a pause', () => {
    const group = { temporary: [field('limits.rpm', 1, 2), field('paused', false, true)] };
    expect(stateEnd(group, 'paused')).toBe(until);
    expect([stateEnd(group, 'draining'), stateEnd(group, 'full')]).toEqual([null, null]);
    expect(stateEnd({}, 'paused')).toBeNull();
    expect(stateEnd({ temporary: [field('paused', true, false)] }, 'paused')).toBeNull();
  });

  it('ends in the future, within 31 days', () => {
    const now = Date.parse(until);
    expect(typedEnd('2026-11-25T09:00', now - 86_400_000)).toMatch(/^2026-11-2[45]T\d\d:00:00/);
    expect(typedEnd('2020-01-01T00:00', now)).toBeNull();
    expect(typedEnd('', now)).toBeNull();
    expect(typedEnd('2026-12-24T09:00', now)).not.toBeNull();
    expect(typedEnd('2026-12-27T09:00', now)).toBeNull();
  });

  it('goes back at once where it is a limit', () => {
    expect(backPatch(field('limits.rpm', 60, 90))).toEqual({ limits: { rpm: 60 } });
    expect(backPatch(field('limits.rpm', undefined, 90))).toEqual({ limits: { rpm: null } });
    expect(backPatch(field('fairness.weights.team.a', 1, 2))).toBeNull();
  });
});
