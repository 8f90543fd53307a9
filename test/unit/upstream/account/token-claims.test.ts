import { describe, expect, it } from 'vitest';
import { claimAt, claimsOf } from '../../../../src/upstream/transfer/tokens.ts';
import { aToken } from './a-token.ts';

describe('the claims of a key', () => {
  it('are read whatever signs it', () => {
    const claims = { sub: 'user-é', n: 7 };
    expect(claimsOf(aToken(claims))).toEqual(claims);
  });

  it.each([
    ['a key of a provider', 'sk-proj-0123'],
    ['two parts', aToken({ sub: 'a' }).split('.').slice(0, 2).join('.')],
    ['four parts', `${aToken({ sub: 'a' })}.x`],
    ['no JSON', 'eyJhbGciOiJub25lIn0.bm90IGpzb24.x'],
    ['no base64', 'eyJhbGciOiJub25lIn0.{"sub":"a"}.x'],
    ['a list', aToken(['a'])],
    ['null', aToken(null)],
    ['one that is longer than any', aToken({ sub: 'a'.repeat(20_000) })],
  ])('are none in %s', (_what, key) => {
    expect(claimsOf(key)).toBeNull();
  });

  it.each([
    ['a text', { sub: 'u1' }, ['sub'], 'u1'],
    ['a number', { uid: 12 }, ['uid'], '12'],
    ['one in another', { 'https://a/b': { id: 'x' } }, ['https://a/b', 'id'], 'x'],
    ['none of that name', { sub: 'u1' }, ['uid'], null],
    ['one that every object has', {}, ['constructor', 'name'], null],
    ['an empty one', { sub: '' }, ['sub'], null],
    ['one that is no text', { sub: { id: 1 } }, ['sub'], null],
    ['one that names nobody, so long is it', { sub: 'u'.repeat(201) }, ['sub'], null],
  ])('have %s at its path', (_what, claims, path, found) => {
    expect(claimAt(claims, path)).toBe(found);
  });
});
