// Warnings about the right to take leases: if every caller has it, and if an import removes it.
import { describe, expect, it } from 'vitest';
import {
  closedLeaseWarnings,
  leaseUsageWarnings,
  leaseWarnings,
} from '../../../../src/config/check/access.ts';
import {
  configSchema,
  type Config,
  type ConfigInput,
} from '../../../../src/contract/config/config.ts';

const HASH = `sha256:${'0'.repeat(64)}`;
const GROUPS = [{ name: 'g' }];
const aKey = (allow: string[]) => ({ id: 'ann', hash: HASH, allow });

const config = (input: ConfigInput): Config => configSchema.parse(input);

/** Warnings of an import over what was stored before. */
function warned(stored: ConfigInput, document: ConfigInput): string[] {
  return closedLeaseWarnings(document, config(stored), config(document));
}

describe('an import that does not name leases', () => {
  it.each([
    ['over one that opened them', { groups: GROUPS, leases: 'open' }, { groups: GROUPS }],
    [
      'over one with a key that could take them',
      { leases: 'keys', keys: [aKey(['*'])] },
      { keys: [aKey([])] },
    ],
    ['over nothing', {}, { groups: GROUPS }],
  ] as const)('is warned of: %s', (_name, stored, document) => {
    expect(warned(stored as ConfigInput, document as ConfigInput)).toEqual([
      expect.stringMatching(/^`leases` is not set/),
    ]);
  });

  it.each([
    ['that says so', { groups: GROUPS, leases: 'open' }, { groups: GROUPS, leases: 'keys' }],
    [
      'with a key that may take them',
      { groups: GROUPS, leases: 'open' },
      { keys: [aKey(['lease'])] },
    ],
    ['where they were closed', { groups: GROUPS, leases: 'keys' }, { groups: GROUPS }],
    ['with nothing in it', { groups: GROUPS, leases: 'open' }, {}],
  ] as const)('is not warned of: one %s', (_name, stored, document) => {
    expect(warned(stored as ConfigInput, document as ConfigInput)).toEqual([]);
  });
});

describe('a configuration', () => {
  it('warns if every caller may take leases, and names those callers', () => {
    expect(leaseWarnings(config({ leases: 'open' }))[0]).toMatch(
      /^`leases: open` lets every client/,
    );
    const keys = [aKey([])];
    expect(leaseWarnings(config({ leases: 'open', keys }))[0]).toMatch(/every gateway key/);
    expect(leaseWarnings(config({ keys }))).toEqual([]);
  });

  it('warns about a group for leases that no key may take', () => {
    const match = (operations: string[]) => ({ name: 'g', match: { operations } });
    expect(leaseWarnings(config({ groups: [match(['lease'])] }))).toHaveLength(1);
    expect(leaseWarnings(config({ groups: [match(['chat'])] }))).toEqual([]);
    const keys = [aKey(['lease'])];
    expect(leaseWarnings(config({ groups: [match(['lease'])], keys }))).toEqual([]);
  });
});

it.each<[string[], number]>([
  [['*'], 1],
  [['lease*'], 1],
  [['*', 'lease_usage'], 0],
  [['lease', 'lease_usage'], 0],
  [['lease'], 0],
  [['files'], 0],
  [[], 0],
])(
  'allow: %j of a key gets a warning if only a wildcard gives the right to report usage',
  (allow, count) => {
    const warnings = leaseUsageWarnings(config({ keys: [aKey(allow)] }));
    expect(warnings).toHaveLength(count);
    for (const text of warnings) expect(text).toMatch(/^Key `ann`: .*includes `lease_usage`/);
  },
);
