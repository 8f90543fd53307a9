import { describe, expect, test } from 'vitest';
import { largerUsage, usageFromJson } from '../../../../src/upstream/usage/usage.ts';
import { REPORTS } from '../../../support/usage-reports.ts';

/** Meaning of the fields that only some providers have. The rest is in the meter's tests. */

describe('the fields of a report', () => {
  test.each(REPORTS)('%s', (_, shape, value, [input, output, cacheRead, cacheWrite, long]) => {
    expect(usageFromJson(shape, value)).toEqual({
      inputTokens: input,
      cacheReadTokens: cacheRead,
      cacheWriteTokens: cacheWrite,
      ...(long !== undefined && { longCacheWriteTokens: long }),
      outputTokens: output,
    });
  });

  test.each([
    null,
    undefined,
    7,
    'usage',
    [],
    {},
    { type: 'duration', seconds: 12 },
    { api_version: { version: '2' }, billed_units: { search_units: 1 } },
  ])('%j tell nothing of tokens', (value) => {
    expect(usageFromJson('openai', value)).toBeNull();
  });
});

test('of two reports of a call each number is the larger one', () => {
  const one = { inputTokens: 9, cacheReadTokens: 1, cacheWriteTokens: 4, outputTokens: 1 };
  const other = { inputTokens: 0, cacheReadTokens: 2, cacheWriteTokens: 3, outputTokens: 7 };
  const larger = { inputTokens: 9, cacheReadTokens: 2, cacheWriteTokens: 4, outputTokens: 7 };
  expect([largerUsage(one, other), largerUsage(other, one)]).toEqual([larger, larger]);
  expect([largerUsage(null, one), largerUsage(one, null)]).toEqual([one, one]);
});
