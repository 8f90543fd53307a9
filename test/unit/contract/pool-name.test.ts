import { expect, test } from 'vitest';
import {
  isOfProviderKey,
  isVerifiedLater,
  OVERFLOW_PARTITION,
} from '../../../src/contract/pool-name.ts';

/** Which pools callers can make up. */

test.each([
  ['a partition of a configured group', 'split', 'acme', true, false],
  ['the pool of a provider key', 'auto:openai', 'fp_1', true, true],
  ['a group that is not split', 'whole', null, false, false],
  ['an automatic group that is not split', 'auto:openai', null, false, false],
  ['the pool that partitions share', 'split', OVERFLOW_PARTITION, false, false],
])('%s', (_what, group, partition, isLater, isKey) => {
  expect(isVerifiedLater({ group, partition })).toBe(isLater);
  expect(isOfProviderKey({ group, partition })).toBe(isKey);
});
