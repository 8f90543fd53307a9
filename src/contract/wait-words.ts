import type { WaitCause } from '../core/parts/decision-log.ts';
import type { WaiterInfo } from './status.ts';

/** Wait reasons in a few words, for lists. They complete "waits for". */
const WORDS: Readonly<Record<WaitCause, string>> = {
  operator_pause: 'an operator, who paused it',
  upstream_pause: 'the upstream, which backs off',
  breaker: 'the breaker',
  members_out: 'a member (all are ejected)',
  settling: 'the end of the restart',
  cap: 'its own limit',
  slots: 'a slot',
  rates: 'a rate limit',
  member: 'the member it belongs to',
  order: 'its turn',
  elsewhere: 'another group',
};

const CAP_WORDS: Readonly<Record<NonNullable<WaiterInfo['cap']>, string>> = {
  tenant: 'the limit of its tenant',
  agent: 'the limit of its agent',
  probe: 'a probe of the upstream',
};

/**
 * Describes what a queued call waits for.
 *
 * @param about the calls that the reason applies to, in words. Absent if they are all calls.
 */
export function waitWords(
  { waits_for: cause, cap, needs = [] }: Pick<WaiterInfo, 'waits_for' | 'cap' | 'needs'>,
  about?: string,
): string {
  const others = needs.map((pool) => pool.split('#', 1)[0]).join(', ');
  const what = cap === undefined ? WORDS[cause] : CAP_WORDS[cap];
  if (cause === 'elsewhere' && others !== '') return `a slot in ${others}`;
  const ofSome = about === undefined ? '' : ` (${about})`;
  return others === '' ? what + ofSome : `${what}${ofSome}, and ${others}`;
}

/** Describes how many calls of a group wait in other groups. Empty if there are none. */
export function elsewhereWords(
  elsewhere: readonly { readonly group: string; readonly calls: number }[] = [],
): string {
  const places = elsewhere.map(({ group, calls }) => `${calls} in ${group}`);
  const calls = elsewhere.reduce((sum, one) => sum + one.calls, 0);
  if (calls === 0) return '';
  return `${calls === 1 ? '1 call of this group waits' : `${calls} calls of this group wait`} elsewhere: ${places.join(', ')}`;
}
