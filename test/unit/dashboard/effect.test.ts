import { describe, expect, it } from 'vitest';
import { groupSchema } from '../../../src/contract/config/group.ts';
import { consequences, type GroupPreview } from '../../../dashboard/src/model/effect.ts';

const NOW: NonNullable<GroupPreview['now']> = {
  slots: { from: 5, to: 8 },
  slots_gained: 3,
  in_use: 5,
  in_use_above: 0,
  members: [],
  queued: 12,
  granted_at_once: 0,
  refused_at_once: 0,
  is_rerouted: false,
  unreachable: [],
};
const HOUR: NonNullable<GroupPreview['last_hour']> = {
  in_use_max: 5,
  queued_max: 9,
  minutes_above: 0,
  granted: 400,
  wait_p50_ms: 900,
  wait_p95_ms: 8_200,
};
const PREVIEW: GroupPreview = {
  version: 7,
  changes: [],
  changes_omitted: 0,
  warnings: [],
  refuses: { calls: 0, is_part: false, refused: [] },
  group: groupSchema.parse({ name: 'a' }),
  now: NOW,
  last_hour: HOUR,
  overlaps_with: { from: [], to: [] },
  takes_from: [],
};

function said(now: Partial<typeof NOW>, rest: Partial<GroupPreview> = {}): string[] {
  const shown = { ...PREVIEW, now: { ...NOW, ...now }, ...rest };
  return consequences(shown).map(({ tone, text }) => `${tone}: ${text}`);
}

const member = (from: number | null, to: number | null, in_use = 0) => ({
  members: [{ member: 'east', slots: { from, to }, in_use }],
});

describe('what a change does to members', () => {
  it.each([
    [member(0, 4), 'plain: east receives calls, with 4 slots.'],
    [member(4, null, 3), 'plain: east continues, with any number of slots.'],
    [member(4, 1, 3), 'plain: east continues, with 1 slot.'],
    [member(4, 0), 'plain: east receives no more calls.'],
    [
      member(4, 0, 1),
      'bad: east receives no more calls. 1 call in flight there continues to the end.',
    ],
    [
      member(null, 0, 2),
      'bad: east receives no more calls. 2 calls in flight there continue to the end.',
    ],
  ])('is told: %j', (now, text) => {
    expect(said(now)).toContain(text);
  });

  it('is not told where it does nothing to them', () => {
    expect(said(member(4, 4, 2)).join(' ')).not.toContain('east');
  });
});

describe('what a change does', () => {
  it.each([
    [{ granted_at_once: 3 }, 'good: 3 of 12 queued calls get a slot immediately.'],
    [
      { slots: { from: 5, to: 1 }, in_use_above: 4 },
      'bad: 4 calls in flight are above the new limit. They continue, and no new calls start until slots are free.',
    ],
    [
      { in_use_above: 1 },
      'bad: 1 call in flight is above the new limit. It continues, and no new calls start until slots are free.',
    ],
    [{ slots: { from: 5, to: 0 } }, 'bad: No more calls start. They queue until they time out.'],
    [
      { refused_at_once: 2 },
      'bad: 2 queued calls are rejected, because they need more slots than one call may use.',
    ],
    [
      { is_rerouted: true, granted_at_once: null },
      'bad: Calls may be routed differently. Queued calls of all groups are routed again and keep their age (12 calls here). New calls follow within 5 s.',
    ],
    [
      { unreachable: [{ partition: 'x', error: 'gone' }] },
      'bad: One pool did not respond. The numbers do not include it.',
    ],
    [{}, 'plain: No call in flight is interrupted: 5 in flight, 12 queued.'],
    [
      {},
      'plain: The last hour stays within this limit: at most 5 in use in one pool and 9 queued. The p95 wait was 8.2 s.',
    ],
  ])('is said: %j', (now, text) => {
    expect(said(now)).toContain(text);
  });

  it('is held against the last hour', () => {
    const last_hour = { ...HOUR, minutes_above: 14 };
    expect(said({ slots: { from: 5, to: 3 } }, { last_hour })).toContain(
      'bad: For 14 minutes of the last hour, more than 3 slots were in use: at most 5 in use in one pool and 9 queued. The p95 wait was 8.2 s.',
    );
    expect(said({}, { last_hour: { ...HOUR, granted: 0 } })).toContain(
      'plain: No call started in the last hour.',
    );
  });

  it('names the groups that calls come from, and those that they meet', () => {
    const rest = {
      takes_from: ['auto:openai'],
      overlaps_with: { from: ['old', 'both'], to: ['both', 'new'] },
    };
    const all = said({}, rest);
    expect(all).toContain('plain: Takes over calls of auto:openai.');
    expect(all).toContain(
      'plain: Calls may now also take slots in new. Calls no longer take slots in old.',
    );
  });

  it('begins with what somebody had better think twice about', () => {
    const tones = consequences({
      ...PREVIEW,
      now: { ...NOW, granted_at_once: 1, refused_at_once: 1 },
    });
    expect(tones.map(({ tone }) => tone)).toEqual(['bad', 'good', 'plain']);
  });

  it('is little where the group is new', () => {
    expect(consequences({ ...PREVIEW, now: null, last_hour: null })).toEqual([
      { tone: 'plain', text: 'New group: no calls are in flight.' },
    ]);
  });
});
