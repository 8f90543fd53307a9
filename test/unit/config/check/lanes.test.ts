import { describe, expect, it } from 'vitest';
import { importConfig } from '../../../../src/config/import-config.ts';
import { laneWarnings } from '../../../../src/config/check/lanes.ts';
import { configSchema } from '../../../../src/contract/config/config.ts';

const HASH = `sha256:${'a'.repeat(64)}`;
const key = (id: string, fields: object = {}): object => ({ id, hash: HASH, ...fields });

function notesOf(document: object): string[] {
  const imported = importConfig({ leases: 'keys', ...document });
  if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
  return imported.notes;
}

describe('a document that relied on the old default', () => {
  it('gets a warning that names its keys without lane_max', () => {
    const [note, ...others] = notesOf({
      keys: [key('a'), key('b', { lane_max: 'high' }), key('c')],
    });
    expect(note).toMatch(/^Keys `a`, `c` without `lane_max`.*Set `lane_max: high`/);
    expect(others).toEqual([]);
  });

  it('gets a warning that names at most five', () => {
    const keys = Array.from({ length: 7 }, (_, index) => key(`k${index}`));
    expect(notesOf({ keys })[0]).toMatch(
      /^Keys `k0`, `k1`, `k2`, `k3`, `k4` and 2 more without `lane_max`/,
    );
  });

  it('gets no warning about keys with lane_max', () => {
    expect(notesOf({ keys: [key('a', { lane_max: 'normal' })] })).toEqual([]);
  });

  it.each([
    [{ queue: { lane_timeouts_ms: { high: 1_000 } } }, 1],
    [{ fairness: { reserved: { 'lane:high': 1 } }, limits: { max_concurrency: 2 } }, 1],
    [{ queue: { lane_max: 'high', lane_timeouts_ms: { high: 1_000 } } }, 0],
    [{ queue: { max_length: 5 } }, 0],
  ])('is warned of a group that uses the lane high without gateway keys: %j', (fields, notes) => {
    expect(notesOf({ groups: [{ name: 'g', ...fields }] })).toHaveLength(notes);
  });
});

it('a group that puts calls into a lane that no key allows gets a warning', () => {
  const groups = [{ name: 'g', queue: { lane_rules: [{ models: ['*'], lane: 'high' }] } }];
  const config = (keys: object[]) => configSchema.parse({ groups, keys });
  expect(laneWarnings(config([key('a')]))[0]).toMatch(/^Group `g` puts calls into lane `high`/);
  expect(laneWarnings(config([key('a', { lane_max: 'high' })]))).toEqual([]);
  expect(laneWarnings(config([]))).toEqual([]);
});
