import type * as z from 'zod';
import type { groupPreviewSchema } from '../../../src/contract/admin/preview-routes.ts';
import type { RouteAnswer } from '../../../src/contract/admin/route.ts';
import type { AdminRoutes } from '../../../src/contract/admin/routes.ts';
import { count, duration, plural } from '../format.ts';

/** The fields that a change would change, and its warnings. */
export type ChangePreview = RouteAnswer<AdminRoutes['previewKey']>['body'];

/** Effect that a change of a group would have. */
export type GroupPreview = z.output<typeof groupPreviewSchema>;

/** A change of one group, as far as it is told of: a way back says nothing of other groups. */
export type ChangeOfGroup = Pick<GroupPreview, 'now' | 'last_hour'> &
  Partial<Pick<GroupPreview, 'takes_from' | 'overlaps_with'>>;

const NO_OVERLAP = { from: [], to: [] };

type PreviewEffect = NonNullable<GroupPreview['now']>;
type MemberEffect = PreviewEffect['members'][number];
type Hour = NonNullable<GroupPreview['last_hour']>;

/** One thing that a change does. `bad`: somebody had better think twice. */
export interface ChangeConsequence {
  readonly text: string;
  readonly tone: 'good' | 'bad' | 'plain';
}

/** Tells what a change does now and to whom, the gravest first. */
export function consequences(change: ChangeOfGroup): ChangeConsequence[] {
  const { now, last_hour, takes_from = [], overlaps_with = NO_OVERLAP } = change;
  const all: (ChangeConsequence | null)[] = [
    ...(now === null ? [plain('A new group: nothing is in flight in it.')] : effects(now)),
    now === null || last_hour === null ? null : lastHour(last_hour, now.slots.to),
    takes_from.length === 0
      ? null
      : plain(`Takes calls that ${takes_from.join(', ')} ${has(takes_from.length)} now.`),
    overlap(overlaps_with),
  ];
  return all.filter((each) => each !== null).toSorted((a, b) => RANK[a.tone] - RANK[b.tone]);
}

const RANK = { bad: 0, good: 1, plain: 2 };

function plain(text: string): ChangeConsequence {
  return { text, tone: 'plain' };
}

function effects(now: PreviewEffect): (ChangeConsequence | null)[] {
  const { queued, granted_at_once: granted, unreachable } = now;
  return [
    now.slots.to === 0 && now.slots.from !== 0
      ? { tone: 'bad', text: 'Nothing is granted any more: calls queue until they time out.' }
      : null,
    now.in_use_above === 0
      ? null
      : {
          tone: 'bad',
          text: `${calls(now.in_use_above)} in flight ${are(now.in_use_above)} above the new limit: they go on to their end, and nothing is granted before there is room.`,
        },
    now.refused_at_once === 0
      ? null
      : {
          tone: 'bad',
          text: `${calls(now.refused_at_once)} that ${now.refused_at_once === 1 ? 'waits is' : 'wait are'} refused: more slots are wanted than one call may take.`,
        },
    now.is_rerouted
      ? {
          tone: queued === 0 ? 'plain' : 'bad',
          text: `Calls may take another way: whoever waits, in any group, is moved and routed again with its age (${calls(queued)} here). New calls follow within 5 s.`,
        }
      : null,
    ...now.members.map(onMember),
    granted === null || granted === 0
      ? null
      : {
          tone: 'good',
          text: `${count(granted)} of ${calls(queued)} that wait get a slot at once.`,
        },
    unreachable.length === 0
      ? null
      : {
          tone: 'bad',
          text: `${unreachable.length === 1 ? 'One pool' : `${unreachable.length} pools`} did not answer: the figures are without ${unreachable.length === 1 ? 'it' : 'them'}.`,
        },
    now.in_use_above + now.refused_at_once === 0 && !now.is_rerouted
      ? plain(`Nobody in flight is cut: ${calls(now.in_use)} in use, ${queued} waiting.`)
      : null,
  ];
}

/** Words for what becomes of a member. Null: nothing. */
function onMember({ member, slots: { from, to }, in_use }: MemberEffect): ChangeConsequence | null {
  if (from === to) return null;
  const there = to === null ? 'any number of slots' : to === 1 ? '1 slot' : `${count(to)} slots`;
  if (to !== 0) return plain(`${member} ${from === 0 ? 'gets calls' : 'goes on'}, with ${there}.`);
  return {
    tone: in_use === 0 ? 'plain' : 'bad',
    text:
      in_use === 0
        ? `${member} gets no more calls.`
        : `${member} gets no more calls: ${calls(in_use)} there ${in_use === 1 ? 'goes' : 'go'} on to ${in_use === 1 ? 'its' : 'their'} end.`,
  };
}

function lastHour(hour: Hour, limit: number | null): ChangeConsequence {
  const waits =
    hour.wait_p95_ms === null
      ? ''
      : ` Waits were ${duration(hour.wait_p95_ms)} at the 95th percentile.`;
  const most = `at most ${count(hour.in_use_max)} in use in one pool and ${count(hour.queued_max)} waiting`;
  if (hour.minutes_above > 0 && limit !== null) {
    const minutes = hour.minutes_above === 1 ? '1 minute' : `${hour.minutes_above} minutes`;
    return {
      tone: 'bad',
      text: `In ${minutes} of the last hour more than ${count(limit)} were in use: ${most}.${waits}`,
    };
  }
  if (hour.granted === 0) return plain('No call was granted in the last hour.');
  return plain(`The last hour fits: ${most}.${waits}`);
}

function overlap({ from, to }: GroupPreview['overlaps_with']): ChangeConsequence | null {
  const more = to.filter((name) => !from.includes(name));
  const less = from.filter((name) => !to.includes(name));
  const parts = [
    more.length === 0 ? '' : `Calls may now take slots in ${more.join(', ')} too.`,
    less.length === 0 ? '' : `Calls no longer take slots in ${less.join(', ')} too.`,
  ].filter((part) => part !== '');
  return parts.length === 0 ? null : plain(parts.join(' '));
}

function calls(number: number): string {
  return plural(number, 'call');
}

function are(number: number): string {
  return number === 1 ? 'is' : 'are';
}

function has(number: number): string {
  return number === 1 ? 'has' : 'have';
}
