import { plural } from '../format.ts';
import type { GroupView } from './status.ts';

/** Act that can be done with a group at once. */
export type GroupAct = 'pause' | 'drain' | 'resume' | 'dry_run_on' | 'dry_run_off' | 'relearn';

/** Lists what can be done with a group as it is. One that is made by itself has switches, and no settings. */
export function actsOf(group: GroupView): GroupAct[] {
  const { kind, paused, draining, dry_run: isDry } = group;
  const acts: GroupAct[] = [];
  if (kind === 'configured' || kind === 'automatic') {
    acts.push(paused || draining ? 'resume' : 'pause');
    if (!draining) acts.push('drain');
  }
  if (hasLearned(group)) acts.push('relearn');
  if (kind === 'configured') acts.push(isDry ? 'dry_run_off' : 'dry_run_on');
  return acts;
}

/** Whether a group has learned a limit or stop for all calls or a scope. */
function hasLearned({ paused_until: until, breaker, limit, scopes = [] }: GroupView): boolean {
  const isStopped = until !== null || breaker !== 'closed';
  return isStopped || limit.source === 'learned' || scopes.length > 0;
}

/** Consequence of an act, in words, and what is said when it is done. */
interface ActConsequence {
  readonly title: string;
  readonly says: string;
  readonly verb: string;
  readonly done: string;
  /** Whether to ask before. */
  readonly isGrave: boolean;
}

/** Says what an act does to how many calls. */
export function consequenceOf(act: GroupAct, group: GroupView): ActConsequence {
  const { name, queued } = group;
  const flying = calls(group.in_use, 'in flight');
  const waiting = calls(queued, 'waiting');
  switch (act) {
    case 'pause':
      return {
        title: `Pause ${name}?`,
        says: `Nothing is granted until it is resumed. ${flying} end as usual. ${waiting} keep their places, and new ones queue behind them; a call whose time is up is refused.`,
        verb: 'Pause',
        done: `${name} is paused.`,
        isGrave: true,
      };
    case 'drain':
      return {
        title: `Drain ${name}?`,
        says: `New calls are refused with 503 until it is resumed. ${flying} and ${waiting} go on to their end.`,
        verb: 'Drain',
        done: `${name} refuses new calls.`,
        isGrave: true,
      };
    case 'resume':
      return {
        title: `Resume ${name}.`,
        says: `${waiting} go on as there is room.`,
        verb: 'Resume',
        done: `${name} goes on.`,
        isGrave: false,
      };
    case 'relearn':
      return {
        title: `Forget what ${name} has learned?`,
        says: `A pause that the upstream asked for ends, the breaker closes, and the limit is the configured one again. ${waiting} go on at once. If the upstream still refuses, it is learned anew.`,
        verb: 'Forget',
        done: `${name} has forgotten what the upstream said.`,
        isGrave: true,
      };
    case 'dry_run_on':
      return {
        title: `Let ${name} run dry?`,
        says: `Its limits hold nobody back any more: ${waiting} and all that come go to the upstream at once. It still decides, and counts who would have waited.`,
        verb: 'Run dry',
        done: `${name} runs dry: its limits hold nobody back.`,
        isGrave: true,
      };
    case 'dry_run_off':
      return {
        title: `End the dry run of ${name}?`,
        says: `Its limits hold again for calls that come from now on. ${flying} end as usual.`,
        verb: 'End dry run',
        done: `The limits of ${name} hold again.`,
        isGrave: true,
      };
  }
}

function calls(n: number, where: string): string {
  return `${plural(n, 'call')} ${where}`;
}
