// What a caller's key opens at a given moment, and which groups it may use.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  configSchema,
  type ConfigInput,
  type GatewayKeyConfig,
} from '../../../src/contract/config/config.ts';
import { forbiddenFor, keysByHash, refusedKey } from '../../../src/routing/key-access.ts';
import type { Placement } from '../../../src/routing/placement.ts';

const NOW = '2026-11-20T10:00:00Z';
const hashOf = (digit: string) => `sha256:${digit.repeat(64)}`;

type KeyAccessKeyInput = Partial<NonNullable<ConfigInput['keys']>[number]>;

function keyOf(fields: KeyAccessKeyInput = {}): GatewayKeyConfig {
  const [key] = configSchema.parse({ keys: [{ id: 'team', hash: hashOf('1'), ...fields }] }).keys;
  if (key === undefined) throw new Error('no key');
  return key;
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: new Date(NOW) });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('a key', () => {
  it.each<[string, KeyAccessKeyInput, boolean]>([
    ['without an end', {}, true],
    ['before its end', { expires_at: '2026-11-20T10:00:00.001Z' }, true],
    ['at its end', { expires_at: NOW }, false],
    ['after its end', { expires_at: '2026-11-20T09:00:00Z' }, false],
    ['with a time zone in its end', { expires_at: '2026-11-20T11:00:00.000Z' }, true],
    ['that was revoked', { revoked_at: NOW }, false],
    ['that is said to be revoked later', { revoked_at: '2027-01-01T00:00:00Z' }, false],
  ])('%s', (_what, fields, opens) => {
    const key = keyOf(fields);
    expect(refusedKey(key, key.hash) === null).toBe(opens);
  });

  it('before a rotation opens until its own end', () => {
    const previous = (expires_at: string) => ({ previous: { hash: hashOf('0'), expires_at } });
    const open = keyOf(previous('2026-11-20T10:00:01Z'));
    const over = keyOf(previous(NOW));
    expect(refusedKey(open, hashOf('0'))).toBeNull();
    expect(refusedKey(over, hashOf('0'))).toMatchObject({ reason: 'key_invalid' });
    for (const key of [open, over]) expect(refusedKey(key, hashOf('1'))).toBeNull();
    expect(keysByHash([open]).get(hashOf('0'))).toBe(open);
    expect(keysByHash([open]).get(hashOf('1'))).toBe(open);
  });

  it('that is good itself goes before one that was it once', () => {
    const old = keyOf({
      id: 'old',
      hash: hashOf('2'),
      previous: { hash: hashOf('1'), expires_at: '2027-01-01T00:00:00Z' },
    });
    const now = keyOf();
    for (const keys of [
      [old, now],
      [now, old],
    ]) {
      expect(keysByHash(keys).get(hashOf('1'))).toBe(now);
    }
  });
});

describe('groups', () => {
  const at = (group: string, isOfProvider: boolean): Placement => ({
    group,
    partition: null,
    assumed: null,
    config: null,
    isOfProvider,
    ruledLane: null,
  });
  const onTop = [at('key:team', false), at('everybody', false)];

  it.each<[string, string[], string | null]>([
    ['none listed', [], null],
    ['all listed', ['four', 'openai'], null],
    ['by a glob', ['*'], null],
    ['one of two listed', ['four'], 'openai'],
    ['another one listed', ['five'], 'four'],
    ['in another case', ['FOUR', 'OpenAI'], null],
  ])('that a key may use: %s', (_what, groups, barred) => {
    const placements = [...onTop, at('four', true), at('openai', true)];
    const refusal = forbiddenFor(keyOf({ groups }), placements);
    const message = `Gateway key \`team\` may not use group \`${barred}\`. An operator can add it to \`groups\` of the key.`;
    const reply = { reason: 'key_forbidden', message, about: { group: barred } };
    expect(refusal).toEqual(barred === null ? null : reply);
  });
});
