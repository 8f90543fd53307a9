import { describe, expect, test } from 'vitest';
import type { ConfigInput } from '../../src/contract/config/config.ts';
import { hashedPartition, hashedPlacements, mayHash } from '../../src/routing/placed-call.ts';
import { isHashed } from '../../src/routing/pool.ts';
import { compileRoutes } from '../../src/routing/placement.ts';
import { fingerprint } from '../../src/runtime/secrets.ts';
import { byId, aCall, aConfig, anUpstream } from '../unit/routing/fixtures.ts';

const KEY = btoa('one deployment');
const OTHER_KEY = btoa('another deployment');
const FINGERPRINT = await fingerprint(KEY, 'sk-caller');
const HASH = /^h:[0-9a-f]{24}$/;

describe('a hashed name', () => {
  test('has a hash for each value, and shows none', async () => {
    const name = await hashedPartition(KEY, 'J%C3%BCrgen,gpt-4o');
    const [first = '', second = '', ...more] = name.split(',');
    expect(first).toMatch(HASH);
    expect(second).toMatch(HASH);
    expect([first === second, more]).toEqual([false, []]);
  });

  test('is the same for the same value and key, wherever the value stands, and for no other', async () => {
    const name = await hashedPartition(KEY, 'a');
    expect(await hashedPartition(KEY, 'b,a')).toBe(`${await hashedPartition(KEY, 'b')},${name}`);
    expect(await hashedPartition(KEY, 'A')).not.toBe(name);
    expect(await hashedPartition(OTHER_KEY, 'a')).not.toBe(name);
    // Nobody can guess it from a fingerprint that anybody may ask for.
    expect(name.slice(2)).not.toBe((await fingerprint(KEY, 'a')).slice(3));
  });

  test('keeps fingerprints and missing values, which show nothing, and is hashed once', async () => {
    const name = await hashedPartition(KEY, `${FINGERPRINT},none,a`);
    expect(name).toMatch(new RegExp(`^${FINGERPRINT},none,h:`));
    expect(await hashedPartition(KEY, name)).toBe(name);
    expect(isHashed(name)).toBe(true);
  });

  test.each(['a', 'none,a', 'fp_1', `${FINGERPRINT}0`, 'h%3A0123456789abcdef01234567', 'h:0'])(
    'is not %s',
    (name) => {
      expect(isHashed(name)).toBe(false);
    },
  );

  test('is that of the pool that newcomers share', () => {
    expect(isHashed('@overflow')).toBe(true);
  });
});

const upstream = anUpstream('openai');
type HashedNamesGroupInput = NonNullable<ConfigInput['groups']>[number];

const SPLIT: HashedNamesGroupInput = { name: 'g', partition_by: ['header:x-tenant'] };

/** Names the partition of a call of tenant `a`, as a Worker with such variables does. */
async function partitionOf(
  group: HashedNamesGroupInput,
  variables: Parameters<typeof mayHash>[1] = {},
) {
  const routes = compileRoutes(aConfig({ groups: [group] }), byId());
  const placed = routes.place(aCall(upstream, { header: () => 'a' }));
  const placements = mayHash(routes, variables)
    ? await hashedPlacements(placed, variables, KEY)
    : placed;
  return placements.find(({ group: name }) => name === 'g')?.partition;
}

describe('partitions', () => {
  test('in a jurisdiction have hashed names', async () => {
    expect(await partitionOf({ ...SPLIT, jurisdiction: 'eu' })).toMatch(HASH);
    expect(await partitionOf(SPLIT, { JURISDICTION: 'eu' })).toMatch(HASH);
  });

  test('elsewhere are named by their values', async () => {
    expect(await partitionOf(SPLIT)).toBe('a');
    expect(await partitionOf(SPLIT, { JURISDICTION: '', DIRECTORY_LOCATION: 'weur' })).toBe('a');
  });

  test('of automatic groups are fingerprints everywhere', async () => {
    const routes = compileRoutes(aConfig({}), byId());
    const placed = routes.place(aCall(upstream, { keyFingerprint: FINGERPRINT }));
    expect(await hashedPlacements(placed, { JURISDICTION: 'eu' }, KEY)).toEqual(placed);
  });
});

test.each<[Partial<HashedNamesGroupInput>, boolean]>([
  [{}, false],
  [{ partition_by: ['caller'] }, false],
  [{ jurisdiction: 'eu' }, false],
  [{ partition_by: ['caller'], jurisdiction: 'eu' }, true],
])('a call waits for hashes only where a group like %j is', (group, expected) => {
  const config = aConfig({ groups: [{ name: 'g', ...group }] });
  expect(mayHash(compileRoutes(config, byId()), {})).toBe(expected);
});
