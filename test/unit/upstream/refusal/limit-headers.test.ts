import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { PROVIDERS, providerNamed } from '../../../../src/providers/index.ts';
import {
  COMMON_HEADERS,
  type HeaderProfile,
} from '../../../../src/upstream/refusal/header-families.ts';
import { readLimitHints } from '../../../../src/upstream/refusal/limit-headers.ts';

const NOW = Date.parse('2026-10-06T12:00:00Z');

const BELIEVED: HeaderProfile = { ...COMMON_HEADERS, isReliable: true, source: '', date: '' };

test.each(['', '-1', 'x', '1e3', '9'.repeat(16)])('"%s" means nothing', (text) => {
  const headers = new Headers({ 'x-ratelimit-remaining-requests': text });
  expect(readLimitHints(headers, BELIEVED, NOW)).toEqual([]);
});

describe('an answer without limits', () => {
  test('costs at most two look-ups', () => {
    const spies = [vi.spyOn(Headers.prototype, 'get'), vi.spyOn(Headers.prototype, 'has')];
    onTestFinished(() => spies.forEach((spy) => spy.mockRestore()));
    const headers = new Headers({ 'content-type': 'application/json' });
    const profiles = PROVIDERS.flatMap(({ limitHeaders }) => limitHeaders ?? []);
    expect(profiles.length).toBeGreaterThan(0);
    for (const profile of profiles) {
      expect(readLimitHints(headers, { ...profile, isReliable: true }, NOW)).toEqual([]);
      const count = spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0);
      expect(count).toBeGreaterThan(0);
      expect(count).toBeLessThanOrEqual(2);
      spies.forEach((spy) => spy.mockClear());
    }
  });
});

describe('the profiles', () => {
  const headers = new Headers({ 'x-ratelimit-remaining': '0' });

  test('that are not reliable are not read, unless an operator says so', () => {
    const profile = providerNamed('together')?.limitHeaders ?? BELIEVED;
    expect(readLimitHints(headers, profile, NOW)).toEqual([]);
    expect(readLimitHints(headers, { ...profile, isReliable: true }, NOW)).toHaveLength(1);
  });

  test('that are unknown are not read', () => {
    expect(readLimitHints(headers, null, NOW)).toEqual([]);
  });
});
