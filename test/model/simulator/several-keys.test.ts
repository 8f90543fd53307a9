// One queue before several keys, beside a queue before each: how long calls wait, and whether agents keep their key.
import { expect, test } from 'vitest';
import { someOf } from '../runs.ts';
import { percentile, simulate, type SeveralKeysLoad } from './several-keys.ts';

const LOAD: SeveralKeysLoad = {
  way: 'members',
  keys: 4,
  slotsEach: 4,
  load: 0.8,
  agents: 100,
  serviceMs: 3_000,
  variation: 1,
  calls: 4_000,
  seed: 1,
};

test.each(someOf([1, 2, 3]))(
  'at 80 % load the 95th part waits at most half as long as with hashing: seed %i',
  (seed) => {
    const members = simulate({ ...LOAD, seed });
    const hashed = simulate({ ...LOAD, seed, way: 'static hashing' });
    expect(percentile(members, 0.95)).toBeLessThanOrEqual(percentile(hashed, 0.95) / 2);
  },
);

test.each(someOf([1, 2, 3]))(
  'at 70 % load at least 90 % of the calls keep the key of their agent: seed %i',
  (seed) => {
    const { keptShare } = simulate({ ...LOAD, seed, load: 0.7 });
    expect(keptShare).toBeGreaterThanOrEqual(0.9);
  },
);
