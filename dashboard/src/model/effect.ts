import type { AnswerAt } from '../../../src/admin/client.ts';
import { count, duration, plural } from '../format.ts';

export type ChangePreview = AnswerAt<'POST /keys/{id}/preview'>;

export type GroupPreview = AnswerAt<'POST /groups/{name}/preview'>;

/** Effect of a change on one group. A rollback preview does not report other groups. */
export type ChangeOfGroup = Pick<GroupPreview, 'now' | 'last_hour'> &
  Partial<Pick<GroupPreview, 'takes_from' | 'overlaps_with'>>;

const NO_OVERLAP = { from: [], to: [] };

type PreviewEffect = NonNullable<GroupPreview['now']>;
type MemberEffect = PreviewEffect['members'][number];
type Hour = NonNullable<GroupPreview['last_hour']>;

/** One effect of a change. `bad` marks effects to think about twice. */
export interface ChangeConsequence {
  readonly text: string;
  readonly tone: 'good' | 'bad' | 'plain';
}

/** Describes what a change does now, the most severe first. */
export function consequences(change: ChangeOfGroup): ChangeConsequence[] {
  const { now, last_hour, takes_from = [], overlaps_with = NO_OVERLAP } = change;
  const all: (ChangeConsequence | null)[] = [
    ...(now === null ? [plain('New group: no calls are in flight.')] : effects(now)),
    now === null || last_hour === null ? null : lastHour(last_hour, now.slots.to),
    takes_from.length === 0 ? null : plain(`Takes over calls of ${takes_from.join(', ')}.`),
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
      ? { tone: 'bad', text: 'No more calls start. They queue until they time out.' }
      : null,
    now.in_use_above === 0
      ? null
      : {
          tone: 'bad',
          text: `${calls(now.in_use_above)} in flight ${are(now.in_use_above)} above the new limit. ${now.in_use_above === 1 ? 'It continues' : 'They continue'}, and no new calls start until slots are free.`,
        },
    now.refused_at_once === 0
      ? null
      : {
          tone: 'bad',
          text: `${plural(now.refused_at_once, 'queued call')} ${are(now.refused_at_once)} rejected, because ${now.refused_at_once === 1 ? 'it needs' : 'they need'} more slots than one call may use.`,
        },
    now.is_rerouted
      ? {
          tone: queued === 0 ? 'plain' : 'bad',
          text: `Calls may be routed differently. Queued calls of all groups are routed again and keep their age (${calls(queued)} here). New calls follow within 5 s.`,
        }
      : null,
    ...now.members.map(onMember),
    granted === null || granted === 0
      ? null
      : {
          tone: 'good',
          text: `${count(granted)} of ${plural(queued, 'queued call')} ${granted === 1 ? 'gets' : 'get'} a slot immediately.`,
        },
    unreachable.length === 0
      ? null
      : {
          tone: 'bad',
          text: `${unreachable.length === 1 ? 'One pool' : `${unreachable.length} pools`} did not respond. The numbers do not include ${unreachable.length === 1 ? 'it' : 'them'}.`,
        },
    now.in_use_above + now.refused_at_once === 0 && !now.is_rerouted
      ? plain(`No call in flight is interrupted: ${now.in_use} in flight, ${queued} queued.`)
      : null,
  ];
}

/** Describes the effect on a member. null if there is none. */
function onMember({ member, slots: { from, to }, in_use }: MemberEffect): ChangeConsequence | null {
  if (from === to) return null;
  const there = to === null ? 'any number of slots' : to === 1 ? '1 slot' : `${count(to)} slots`;
  const starts = from === 0 ? 'receives calls' : 'continues';
  if (to !== 0) return plain(`${member} ${starts}, with ${there}.`);
  return {
    tone: in_use === 0 ? 'plain' : 'bad',
    text:
      in_use === 0
        ? `${member} receives no more calls.`
        : `${member} receives no more calls. ${calls(in_use)} in flight there ${in_use === 1 ? 'continues' : 'continue'} to the end.`,
  };
}

function lastHour(hour: Hour, limit: number | null): ChangeConsequence {
  const waits = hour.wait_p95_ms === null ? '' : ` The p95 wait was ${duration(hour.wait_p95_ms)}.`;
  const most = `at most ${count(hour.in_use_max)} in use in one pool and ${count(hour.queued_max)} queued`;
  if (hour.minutes_above > 0 && limit !== null) {
    const minutes = hour.minutes_above === 1 ? '1 minute' : `${hour.minutes_above} minutes`;
    return {
      tone: 'bad',
      text: `For ${minutes} of the last hour, more than ${plural(limit, 'slot')} ${limit === 1 ? 'was' : 'were'} in use: ${most}.${waits}`,
    };
  }
  if (hour.granted === 0) return plain('No call started in the last hour.');
  return plain(`The last hour stays within this limit: ${most}.${waits}`);
}

function overlap({ from, to }: GroupPreview['overlaps_with']): ChangeConsequence | null {
  const more = to.filter((name) => !from.includes(name));
  const less = from.filter((name) => !to.includes(name));
  const parts = [
    more.length === 0 ? '' : `Calls may now also take slots in ${more.join(', ')}.`,
    less.length === 0 ? '' : `Calls no longer take slots in ${less.join(', ')}.`,
  ].filter((part) => part !== '');
  return parts.length === 0 ? null : plain(parts.join(' '));
}

function calls(number: number): string {
  return plural(number, 'call');
}

function are(number: number): string {
  return number === 1 ? 'is' : 'are';
}
