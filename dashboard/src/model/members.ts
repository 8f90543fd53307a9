import { count, duration } from '../format.ts';
import { isHolding, listWords, scopeEnd, type ScopeView } from './scope-words.ts';
import { slotsOfPool, type Slots } from './slots.ts';
import type { GroupView, WaiterView } from './status.ts';

/** One place where calls of a group run, as its status tells of it. */
export type MemberView = NonNullable<GroupView['members']>[number];

/** Which other state of a group has the colour of a member's. */
type Tone = 'flowing' | 'full' | 'paused' | 'learning' | 'broken' | 'draining';

/** The state of a member in words, and its colour. */
export interface MemberState {
  readonly words: string;
  readonly tone: Tone;
}

const OUT_WORDS: Readonly<Record<NonNullable<MemberView['out']>['reason'], string>> = {
  unauthorized: 'key refused',
  quota: 'quota used up',
  egress: 'refuses where the Worker runs',
};

/** Returns the most important state of a member. Its group lists the scopes of all members. */
export function memberStateOf(member: MemberView, scopes: readonly ScopeView[] = []): MemberState {
  const { out, retired, enabled, breaker, limit, about } = member;
  if (retired === true) return { words: 'no longer configured', tone: 'draining' };
  if (!enabled) return { words: 'switched off', tone: 'draining' };
  if (out !== null) return { words: `out: ${OUT_WORDS[out.reason]}`, tone: 'broken' };
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

/** The slots of a member, as the picture of a group has them. */
export function slotsOfMember(member: MemberView): Slots {
  return slotsOfPool({ ...member, lent: 0, queued: 0 });
}

/** Tells what comes next for a member that is out; null: it is in, or switched off. */
export function outlookOf({ out, enabled }: MemberView, nowMs: number): string | null {
  if (out === null || !enabled) return null;
  const sinceMs = Math.max(0, nowMs - Date.parse(out.since));
  const leftMs = Date.parse(out.probe_at) - nowMs;
  const next =
    leftMs > 0 ? `the next call probes it in ${duration(leftMs)}` : 'the next call probes it';
  return `for ${duration(sinceMs)}; ${next}`;
}

/** Whether an operator would bring a member back, and not take it out. */
export function isOut({ out, enabled }: MemberView): boolean {
  return out !== null || !enabled;
}

/** Says how calls fared that belong to a member. Null: none does. */
export function affinityInWords({ affinity }: Pick<GroupView, 'affinity'>): string | null {
  if (affinity === undefined) return null;
  const { kept_total: kept, left_total: left, waited_total: waited } = affinity;
  if (kept + left + waited === 0) return null;
  return `${count(kept)} calls went to the member of their agent, ${count(left)} left it, ${count(waited)} waited for it`;
}

/** Says what it means to take a member out, or to bring it back. */
export function consequenceOfSwitch(
  member: MemberView,
  others: number,
): { readonly title: string; readonly says: string; readonly verb: string; readonly done: string } {
  const { id, in_use: inUse } = member;
  if (isOut(member)) {
    return {
      title: `Bring ${id} back?`,
      says: 'The next call may go there at once. If its upstream refuses it again, that call goes elsewhere and the member is out again.',
      verb: 'Bring back',
      done: `${id} gets calls again.`,
    };
  }
  const flying = inUse === 1 ? '1 call in flight ends' : `${inUse} calls in flight end`;
  const rest =
    others === 0
      ? 'No other member is left: calls wait until one is back.'
      : 'Calls that wait go to the other members.';
  return {
    title: `Take ${id} out?`,
    says: `It is switched off, and gets no calls until somebody brings it back. ${flying} as usual. ${rest}`,
    verb: 'Take out',
    done: `${id} gets no calls.`,
  };
}

/** Says which members a waiter does not go to, and which one it waits for. */
export function membersInWords({
  excluded_members: excluded = [],
  waits_for_member: own,
}: Pick<WaiterView, 'excluded_members' | 'waits_for_member'>): string {
  const parts = [
    ...(own === undefined ? [] : [`waits for ${own}`]),
    ...(excluded.length === 0 ? [] : [`not ${excluded.join(', ')}`]),
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
