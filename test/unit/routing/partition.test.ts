import { describe, expect, it, test } from 'vitest';
import {
  isHashed,
  isOwnPartition,
  ownPartition,
  partitionOf,
  splitPartition,
  takesCalls,
} from '../../../src/routing/pool.ts';
import { aConfig } from './fixtures.ts';

/** Names of partitions for calls with a key of their own, in groups that name members. */

const PRINT = `fp_${'0123456789abcdef'.repeat(2).slice(0, 24)}`;

const ACCOUNT = PRINT.replace('fp_', 'acct_');

function partition(by: 'caller' | 'header:x-team', value: string): string | null {
  const upstream = { id: 'openai', baseUrl: 'https://api.openai.test' };
  const facts = { keyFingerprint: null, caller: value, model: null, upstream, header: () => value };
  return partitionOf([by], facts);
}

test.each([
  [null, PRINT, `own-${PRINT}`],
  [null, ACCOUNT, `own-${ACCOUNT}`],
  ['team-a', PRINT, `team-a,own-${PRINT}`],
  ['team-a,m', null, 'team-a,m,own-none'],
])('of %s with the key %s', (split, print, named) => {
  const own = ownPartition(split, print);
  expect([own, isOwnPartition(own), splitPartition(own)]).toEqual([named, true, split]);
});

describe('nothing that a caller writes passes for one', () => {
  it.each([`own-${PRINT}`, `own-${ACCOUNT}`, 'own-none', 'x,own-none', `,own-${PRINT}`])(
    '%s',
    (value) => {
      for (const by of ['caller', 'header:x-team'] as const) {
        const name = partition(by, value);
        expect([isOwnPartition(name), splitPartition(name)]).toEqual([false, name]);
      }
    },
  );

  it('though it stays a name of its own', () => {
    expect(partition('caller', 'own-none')).toBe('%6Fwn-none');
    expect(partition('caller', 'own-x')).toBe('own-x');
  });
});

it('shows nothing of what callers wrote', () => {
  expect(isHashed(ownPartition(null, PRINT))).toBe(true);
  expect(isHashed(ownPartition(null, ACCOUNT))).toBe(true);
  expect(isHashed(ownPartition('team-a', PRINT))).toBe(false);
});

it.each([
  [[], `own-${PRINT}`, true],
  [[], null, true],
  [[], 'team-a', false],
  [['caller' as const], `team-a,own-${PRINT}`, true],
  [['caller' as const], `own-${PRINT}`, false],
])('a group with members, split by %j, takes calls of the pool %s: %s', (by, name, takes) => {
  const members = [{ upstream: 'openai' }];
  const config = aConfig({ groups: [{ name: 'g', partition_by: by, members }] });
  expect(takesCalls({ group: 'g', partition: name }, config)).toBe(takes);
});

it('a group without members takes none of a pool for a key', () => {
  const config = aConfig({ groups: [{ name: 'g' }] });
  expect(takesCalls({ group: 'g', partition: `own-${PRINT}` }, config)).toBe(false);
});
