import { count, duration, plural } from '../format.ts';
import { isHolding, listWords, scopeEnd, type ScopeView } from './scope-words.ts';
import { slotsOfPool, type Slots } from './slots.ts';
import type { GroupView, WaiterView } from './status.ts';

export type MemberView = NonNullable<GroupView['members']>[number];

/** State of a group whose colour a member state shares. */
type Tone = 'flowing' | 'full' | 'paused' | 'learning' | 'broken' | 'draining';

export interface MemberState {
  readonly words: string;
  readonly tone: Tone;
}

const OUT_WORDS: Readonly<Record<NonNullable<MemberView['out']>['reason'], string>> = {
  unauthorized: 'key refused',
  quota: 'quota used up',
  egress: 'location not served',
};

/** Returns the most important state of a member. Its group lists the scopes of all members. */
export function memberStateOf(member: MemberView, scopes: readonly ScopeView[] = []): MemberState {
  const { out, retired, enabled, breaker, limit, about } = member;
  if (retired === true) return { words: 'no longer configured', tone: 'draining' };
  if (!enabled) return { words: 'disabled', tone: 'draining' };
  if (out !== null) return { words: `ejected: ${OUT_WORDS[out.reason]}`, tone: 'broken' };
  if (breaker !== 'closed' && about === undefined) return { words: 'broken', tone: 'broken' };
  const isStopped = breaker !== 'closed' || member.paused_until !== null;
  if (isStopped && about === undefined) return { words: 'paused', tone: 'paused' };
  const { effective } = limit;
  const isFull = effective !== null && takenOf(member) >= effective;
  if (isFull) return { words: 'full', tone: 'full' };
  if (stopsAt(member, scopes).length > 0) return { words: 'partly paused', tone: 'paused' };
  if (limit.source === 'learned') return { words: 'learning', tone: 'learning' };
  return { words: takenOf(member) === 0 ? 'idle' : 'flowing', tone: 'flowing' };
}

export function slotsOfMember(member: MemberView): Slots {
  return slotsOfPool({ ...member, lent: 0, queued: 0 });
}

/** Describes when an ejected member is probed. null if the member is not ejected, or disabled. */
export function outlookOf({ out, enabled }: MemberView, nowMs: number): string | null {
  if (out === null || !enabled) return null;
  const sinceMs = Math.max(0, nowMs - Date.parse(out.since));
  const leftMs = Date.parse(out.probe_at) - nowMs;
  const next = leftMs > 0 ? `next probe in ${duration(leftMs)}` : 'the next call probes it';
  return `for ${duration(sinceMs)}; ${next}`;
}

/** Whether a member is ejected or disabled, so that an operator can restore it. */
export function isOut({ out, enabled }: MemberView): boolean {
  return out !== null || !enabled;
}

/** Describes how often calls reached their preferred member. null if the group has no affinity. */
export function affinityInWords({ affinity }: Pick<GroupView, 'affinity'>): string | null {
  if (affinity === undefined) return null;
  const { kept_total: kept, left_total: left, waited_total: waited } = affinity;
  if (kept + left + waited === 0) return null;
  return `${plural(kept, 'call')} went to the preferred member, ${count(left)} to another, ${count(waited)} waited for it`;
}

export function consequenceOfSwitch(
  member: MemberView,
  others: number,
): { readonly title: string; readonly says: string; readonly verb: string; readonly done: string } {
  const { id, in_use: inUse } = member;
  if (isOut(member)) {
    return {
      title: `Restore ${id}?`,
      says: 'The next call can go there immediately. If its upstream refuses the call again, the call goes to another member and this one is ejected again.',
      verb: 'Restore member',
      done: `${id} receives calls again.`,
    };
  }
  const flying = inUse === 1 ? '1 call in flight ends' : `${inUse} calls in flight end`;
  const rest =
    others === 0
      ? 'No other member is available: calls queue until one is restored.'
      : 'Queued calls go to the other members.';
  return {
    title: `Disable ${id}?`,
    says: `It receives no calls until it is restored. ${flying} as usual. ${rest}`,
    verb: 'Disable member',
    done: `${id} receives no more calls.`,
  };
}

/** Describes which members a queued call excludes, and which one it waits for. */
export function membersInWords({
  excluded_members: excluded = [],
  waits_for_member: own,
}: Pick<WaiterView, 'excluded_members' | 'waits_for_member'>): string {
  const parts = [
    ...(own === undefined ? [] : [`waits for ${own}`]),
    ...(excluded.length === 0 ? [] : [`except ${excluded.join(', ')}`]),
  ];
  return parts.length === 0 ? 'any' : parts.join('; ');
}

/**
 * Describes how long a member is paused or its breaker is open, and which calls that stops if not all. null if
 * neither stops it.
 */
export function pauseOf(
  member: MemberView,
  nowMs: number,
  scopes: readonly ScopeView[] = [],
): string | null {
  const { words } = memberStateOf(member, scopes);
  const stops = stopsAt(member, scopes);
  const ends: Readonly<Record<string, string | null>> = {
    paused: member.paused_until,
    broken: member.breaker_until,
    'partly paused': latestEnd(stops),
  };
  const until = ends[words] ?? null;
  const leftMs = until === null ? 0 : Date.parse(until) - nowMs;
  const left = leftMs > 0 ? `for ${duration(leftMs)} more` : null;
  if (words !== 'partly paused') return left;
  const stopped = listWords(stops.map(({ about }) => about));
  return [stopped, left].filter((part) => part !== null).join(' ');
}

type StopView = Pick<ScopeView, 'about' | 'paused_until' | 'breaker_until'>;

/** Lists the calls that a member stops while all others start there. */
function stopsAt(member: MemberView, scopes: readonly ScopeView[]): readonly StopView[] {
  const { about, paused_until, breaker, breaker_until } = member;
  const isStopped = about !== undefined && (paused_until !== null || breaker !== 'closed');
  const own = isStopped ? [{ about, paused_until, breaker_until }] : [];
  return [...own, ...scopes.filter((scope) => scope.member === member.id && isHolding(scope))];
}

function latestEnd(stops: readonly StopView[]): string | null {
  const ends = stops.map(scopeEnd).filter((end) => end !== null);
  return ends.toSorted().at(-1) ?? null;
}

function takenOf({ in_use: inUse, cooling, unclaimed: orphaned }: MemberView): number {
  return inUse + cooling + orphaned;
}
