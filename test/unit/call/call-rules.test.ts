import { expect, it } from 'vitest';
import { groupSchema } from '../../../src/contract/config/group.ts';
import { callRules } from '../../../src/call/plan/call-rules.ts';
import type { Placement } from '../../../src/routing/placement.ts';

type Holds = Partial<Record<'idle_ms' | 'stalled_ms' | 'max_hold_ms', number | null>>;

/** A group with these holds; null: an automatic one. */
function placed(holds: Holds | null): Placement {
  const config = holds === null ? null : groupSchema.parse({ name: 'g', holds });
  const of = { group: 'g', partition: null, assumed: null, isOfProvider: true, ruledLane: null };
  return { ...of, config };
}

const BY_DEFAULT = { idleMs: 600_000, stalledMs: 60_000, maxHoldMs: 3_600_000 };

it.each<readonly [what: string, (Holds | null)[], object]>([
  ['an automatic group', [null], BY_DEFAULT],
  ['a group that says nothing of it', [{}], BY_DEFAULT],
  [
    'the strictest of several',
    [{ idle_ms: 5 }, { stalled_ms: 7 }, null],
    { idleMs: 5, stalledMs: 7 },
  ],
  [
    'a group that wants none',
    [{ idle_ms: null, stalled_ms: null }],
    { idleMs: null, stalledMs: null },
  ],
  ['one of two that wants none', [{ idle_ms: null }, null], { idleMs: 600_000 }],
  ['a longer call than by default', [{ max_hold_ms: 7_200_000 }], { maxHoldMs: 7_200_000 }],
])('the bounds of a call in %s', (_what, groups, expected) => {
  expect(callRules(groups.map(placed)).hold).toMatchObject(expected);
});
