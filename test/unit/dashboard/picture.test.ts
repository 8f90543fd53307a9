import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isOld, median, placeLeases, type Cells } from '../../../dashboard/src/model/cells.ts';
import { sectionsOf } from '../../../dashboard/src/model/queue.ts';
import { toneOf } from '../../../dashboard/src/model/tenant-tone.ts';
import type { LeaseView } from '../../../dashboard/src/model/status.ts';

function lease(id: string, slots = 1): LeaseView {
  return {
    id,
    partition: null,
    caller: 'team',
    tenant: 'team',
    agent: null,
    lane: 'normal',
    slots,
    upstream: 'openai',
    model: null,
    granted_at: '2026-11-20T10:00:00.000Z',
    age_ms: 0,
    expires_at: '2026-11-20T10:00:45.000Z',
    state: 'held',
  };
}

const names = (cells: Cells): string => cells.map((one) => one?.id ?? '·').join('');
const after = (before: string, leases: readonly LeaseView[], slots: number): string =>
  names(
    placeLeases(
      Array.from(before).map((id) => (id === '·' ? null : lease(id))),
      leases,
      slots,
    ),
  );

describe('leases in their cells', () => {
  it.each<[string, string, readonly LeaseView[], number, string]>([
    ['fill the first that are free', '', [lease('a'), lease('b')], 4, 'ab··'],
    ['stay where they are when one before them ends', 'abc·', [lease('b'), lease('c')], 4, '·bc·'],
    ['take the gap of one that ended', '·bc·', [lease('b'), lease('c'), lease('d')], 4, 'dbc·'],
    ['take as many as they have slots', '·b··', [lease('b'), lease('w', 2)], 4, 'wbw·'],
    [
      'are all shown where there are more than slots',
      'ab',
      [lease('a'), lease('b'), lease('c')],
      2,
      'abc',
    ],
    ['close up when the limit is lowered', 'a·b·', [lease('a'), lease('b')], 2, 'ab'],
    [
      'are never dropped for a limit',
      'abcd',
      ['a', 'b', 'c', 'd'].map((id) => lease(id)),
      1,
      'abcd',
    ],
  ])('%s', (_title, before, leases, slots, expected) => {
    expect(after(before, leases, slots)).toBe(expected);
  });

  it('show what is new of a lease that stays', () => {
    const cells = placeLeases([lease('a')], [{ ...lease('a'), state: 'revoking' }], 1);
    expect(cells[0]?.state).toBe('revoking');
  });
});

it.each([
  ['three times the usual hold', 30_000, 10_000, true],
  ['less than that', 29_000, 10_000, false],
  ['long beside a short hold, and short all the same', 9_000, 100, false],
  ['an hour, where nobody knows what is usual', 3_600_000, null, false],
])('a lease of %s stands out or does not', (_title, ageMs, usualMs, stands) => {
  expect(isOld(ageMs, usualMs)).toBe(stands);
});

it('the usual hold is the middle one', () => {
  expect([median([]), median([9, 1, 5]), median([4])]).toEqual([null, 5, 4]);
});

it('sections of the queue keep the order of their lane, and empty lanes are left out', () => {
  const waiters = [
    { lane: 'low', id: 1 },
    { lane: 'high', id: 2 },
    { lane: 'low', id: 3 },
  ] as const;
  expect(sectionsOf(waiters).map(({ lane, marks }) => [lane, marks.map(({ id }) => id)])).toEqual([
    ['high', [2]],
    ['low', [1, 3]],
  ]);
});

describe('the colour of a tenant', () => {
  it('is the same on every machine', () => {
    expect(['team-search', 'fp_2a65dc88752588c3c7ffbc8b', ''].map(toneOf)).toEqual([2, 0, 4]);
  });

  it('is one of those that the style has, each about as often', () => {
    const css = readFileSync('dashboard/src/style/tokens.css', 'utf8');
    const has = css.match(/--tenant-\d+:/g)?.length;
    const counts = new Map<number, number>();
    for (let i = 0; i < 4_000; i += 1) {
      const tone = toneOf(`fp_${i.toString(16).padStart(24, '0')}`);
      counts.set(tone, (counts.get(tone) ?? 0) + 1);
    }
    expect([...counts.keys()].toSorted((a, b) => a - b)).toEqual([...Array(has).keys()]);
    expect(Math.min(...counts.values())).toBeGreaterThan(400);
  });
});
