import { plural } from '../format.ts';
import type { GroupView } from './status.ts';

export type GroupAct = 'pause' | 'drain' | 'resume' | 'dry_run_on' | 'dry_run_off' | 'relearn';

/** Acts available for a group in its current state. Automatic groups have switches but no settings. */
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

/** Whether a group has learned a limit, a backoff or an open breaker, for all calls or for a scope. */
function hasLearned({ paused_until: until, breaker, limit, scopes = [] }: GroupView): boolean {
  const isStopped = until !== null || breaker !== 'closed';
  return isStopped || limit.source === 'learned' || scopes.length > 0;
}

/** Texts of an act: its confirmation, and the notice when it is done. */
interface ActConsequence {
  readonly title: string;
  readonly says: string;
  readonly verb: string;
  readonly done: string;
  /** Whether the act needs a confirmation. */
  readonly isGrave: boolean;
}

export function consequenceOf(act: GroupAct, group: GroupView): ActConsequence {
  const { name, queued, in_use: inUse } = group;
  const flying = `${plural(inUse, 'call')} in flight`;
  const waiting = plural(queued, 'queued call');
  const end = inUse === 1 ? 'ends' : 'end';
  switch (act) {
    case 'pause':
      return {
        title: `Pause ${name}?`,
        says: `No new calls start until you resume. ${flying} ${end} as usual. ${waiting} ${queued === 1 ? 'keeps its place' : 'keep their places'}, and new calls queue behind. Calls that time out are rejected.`,
        verb: 'Pause',
        done: `${name} is paused.`,
        isGrave: true,
      };
    case 'drain':
      return {
        title: `Drain ${name}?`,
        says: `New calls are rejected with 503 until you resume. ${flying} and ${waiting} continue to the end.`,
        verb: 'Drain',
        done: `${name} rejects new calls.`,
        isGrave: true,
      };
    case 'resume':
      return {
        title: `Resume ${name}.`,
        says: `${waiting} ${queued === 1 ? 'starts' : 'start'} as slots become free.`,
        verb: 'Resume',
        done: `${name} is resumed.`,
        isGrave: false,
      };
    case 'relearn':
      return {
        title: `Reset what ${name} has learned?`,
        says: `The upstream backoff ends, the breaker closes, and the configured limit applies again. ${waiting} can start immediately. If the upstream still refuses calls, Headgate learns its limits again.`,
        verb: 'Reset',
        done: `Reset what ${name} had learned.`,
        isGrave: true,
      };
    case 'dry_run_on':
      return {
        title: `Start a dry run of ${name}?`,
        says: `Its limits are no longer enforced: ${waiting} and all new calls go to the upstream immediately. The group still decides, and counts the calls that would have waited.`,
        verb: 'Start dry run',
        done: `${name} is in a dry run. Its limits are not enforced.`,
        isGrave: true,
      };
    case 'dry_run_off':
      return {
        title: `End the dry run of ${name}?`,
        says: `Its limits apply again to new calls. ${flying} ${end} as usual.`,
        verb: 'End dry run',
        done: `The limits of ${name} apply again.`,
        isGrave: true,
      };
  }
}
