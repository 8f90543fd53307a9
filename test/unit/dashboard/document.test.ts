import { describe, expect, it } from 'vitest';
import { isSame, rebase, valueAt, withValue } from '../../../dashboard/src/model/document.ts';

const GROUP = { name: 'a', limits: { rpm: 1, tpm: null }, match: { models: ['x'] }, later: 7 };

describe('a document in a form', () => {
  it('is read by path', () => {
    expect(valueAt(GROUP, 'limits.rpm')).toBe(1);
    expect(valueAt(GROUP, 'limits.none')).toBeUndefined();
    expect(valueAt({ limits: 5 }, 'limits.rpm')).toBeUndefined();
  });

  it('keeps every field that is not changed, those that no form shows too', () => {
    const next = withValue(GROUP, 'limits.rpm', 2);
    expect(next).toEqual({ ...GROUP, limits: { rpm: 2, tpm: null } });
    expect(GROUP.limits.rpm).toBe(1);
  });

  it('loses a field that is set to nothing, and gets what was not there', () => {
    expect(withValue(GROUP, 'limits.rpm', undefined)).toEqual({ ...GROUP, limits: { tpm: null } });
    expect(withValue({}, 'queue.keepalive.after_ms', 5)).toEqual({
      queue: { keepalive: { after_ms: 5 } },
    });
  });

  it.each([
    [{ a: 1, b: [1, { c: 2 }] }, { b: [1, { c: 2 }], a: 1 }, true],
    [{ a: 1 }, { a: 1, b: undefined }, false],
    [[1, 2], [2, 1], false],
    [null, {}, false],
    ['1', 1, false],
  ])('is the same whatever the order of its fields: %j, %j', (a, b, same) => {
    expect(isSame(a, b)).toBe(same);
  });
});

describe('my changes on top of theirs', () => {
  const base = { limits: { rpm: 1, tpm: 2 }, weights: { a: 1 }, models: ['x'], mode: 'queue' };

  it('are both made where they do not meet', () => {
    const mine = { ...base, limits: { rpm: 5, tpm: 2 }, weights: { a: 1, mine: 2 } };
    const theirs = { ...base, limits: { rpm: 1, tpm: 9 }, weights: { a: 1, theirs: 3 } };
    expect(rebase(base, mine, theirs)).toEqual({
      value: { ...base, limits: { rpm: 5, tpm: 9 }, weights: { a: 1, mine: 2, theirs: 3 } },
      clashes: [],
    });
  });

  it('hold where both changed the same field, which is said', () => {
    const mine = { ...base, limits: { rpm: 5, tpm: 2 }, models: ['m'] };
    const theirs = { ...base, limits: { rpm: 7, tpm: 2 }, models: ['t'] };
    const { value, clashes } = rebase(base, mine, theirs);
    expect(value).toEqual(mine);
    expect(clashes).toEqual([
      { path: 'limits.rpm', mine: 5, theirs: 7 },
      { path: 'models', mine: ['m'], theirs: ['t'] },
    ]);
  });

  it('take away what I took away, and keep away what they did', () => {
    const { weights: _weights, ...mine } = base;
    const { models: _models, ...theirs } = base;
    expect(rebase(base, mine, theirs)).toEqual({
      value: { limits: base.limits, mode: 'queue' },
      clashes: [],
    });
  });

  it('are no clash where both did the same, or the shape changed on one side only', () => {
    const mine = { ...base, mode: { spill_to: ['b'] } };
    expect(rebase(base, mine, mine)).toEqual({ value: mine, clashes: [] });
    expect(rebase(base, mine, base)).toEqual({ value: mine, clashes: [] });
    expect(rebase(base, base, mine)).toEqual({ value: mine, clashes: [] });
  });
});
