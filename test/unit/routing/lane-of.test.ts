import { expect, it } from 'vitest';
import { groupSchema } from '../../../src/contract/config/group.ts';
import type { Lane } from '../../../src/core/words/ticket.ts';
import { laneOf } from '../../../src/routing/placed-call.ts';
import type { Placement } from '../../../src/routing/placement.ts';

function lane(
  asked: Lane | null,
  best: Lane | null,
  queue: object | null,
  ruledLane: Lane | null = null,
): Lane {
  const config = queue === null ? null : groupSchema.parse({ name: 'g', queue });
  const placement = { group: 'g', partition: null, config, ruledLane } as unknown as Placement;
  return laneOf({ lane: asked, keyLanes: { byDefault: null, best } }, placement);
}

it.each<[string, Lane | null, Lane | null, object | null, Lane]>([
  ['without a gateway key', 'high', null, {}, 'normal'],
  ['without one in an automatic group', 'high', null, null, 'normal'],
  ['without one where the group allows it', 'high', null, { lane_max: 'high' }, 'high'],
  ['with a key that allows it', 'high', 'high', {}, 'high'],
  [
    'with a key that allows it, in a group that does not',
    'high',
    'high',
    { lane_max: 'normal' },
    'normal',
  ],
  ['with a key that does not', 'high', 'normal', { lane_max: 'high' }, 'normal'],
  ['for less', 'low', null, {}, 'low'],
  ['for none', null, null, {}, 'normal'],
  ['for none where the group has a default', null, null, { lane_default: 'high' }, 'high'],
])('a caller that asks %s', (_, asked, best, queue, expected) => {
  expect(lane(asked, best, queue)).toBe(expected);
});

it('the lane of a lane rule needs no key', () => {
  expect(lane(null, null, {}, 'high')).toBe('high');
  expect(lane(null, 'normal', {}, 'high')).toBe('normal');
});
