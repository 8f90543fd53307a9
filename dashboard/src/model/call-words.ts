import type { AnswerAt } from '../../../src/admin/client.ts';
import type { Rejection } from '../../../src/core/words/outcome.ts';
import type { RefusalKind } from '../../../src/core/words/signal.ts';
import type { PassedOver, PlacedBy, WaitCause } from '../../../src/core/parts/decision-log.ts';
import { count, duration, plural, usd } from '../format.ts';

export type DecisionView = AnswerAt<'GET /groups/{name}/decisions'>['decisions'][number];

export const WAIT_WORDS: Readonly<Record<WaitCause, string>> = {
  operator_pause: 'paused by an operator',
  upstream_pause: 'upstream was backing off',
  breaker: 'breaker was open',
  members_out: 'all members were ejected',
  settling: 'group had just been reset',
  cap: 'limit of its tenant or agent reached',
  slots: 'all slots in use',
  rates: 'rate limit used up',
  member: 'preferred member was full',
  order: 'other calls went first',
  elsewhere: 'another group was full',
};

export const WAIT_SENTENCES: Readonly<Record<WaitCause, string>> = {
  operator_pause: 'An operator had paused the group.',
  upstream_pause: 'The upstream was backing off.',
  breaker:
    'The upstream had failed too often. The breaker was open, or allowed one probe call only.',
  members_out:
    'Every member was ejected: its key was refused, its quota was used up, or an operator ejected it.',
  settling:
    'The group had just been reset or rerouted, and waited for older calls to return to their places.',
  cap: 'Its tenant, its agent, or calls queued in other groups held as many slots as allowed.',
  slots: 'All slots were in use, or fewer were free than the call needs.',
  rates: 'A request or token limit was used up.',
  member:
    'Its preferred member, which has its prompts cached, had no free slot. Other members had.',
  order: 'A slot was free, but other calls went first.',
  elsewhere: 'A slot was free, but another group that the call needs was full.',
};

const PLACED_WORDS: Readonly<Record<PlacedBy, string>> = {
  sole: 'the only member of the group',
  affinity: 'which served earlier calls of its agent or caller and has their prompts cached',
  left: 'because its preferred member would not have had a free slot in time',
  load: 'which had the largest share of free slots',
  dry_run: 'even if it was full, because of the dry run',
};

const PASSED_OVER_WORDS: Readonly<Record<PassedOver, string>> = {
  excluded: 'had refused it',
  out: 'was ejected',
  disabled: 'is disabled',
  paused: 'was backing off',
  breaker: 'had an open breaker',
  budget: 'had spent its budget',
  slots: 'was full',
  rates: 'had used up a rate limit',
  tier: 'is in a later tier',
  load: 'was busier',
};

/** Describes which member took a call, and why the others did not. null if the group has no members. */
export function placedSentence({ placed }: Pick<DecisionView, 'placed'>): string | null {
  if (placed === undefined) return null;
  const others = placed.others.map(({ member, cause }) => `${member} ${PASSED_OVER_WORDS[cause]}`);
  const rest = others.length === 0 ? '' : ` Other members: ${others.join(', ')}.`;
  return `It went to ${placed.member}, ${PLACED_WORDS[placed.by]}.${rest}`;
}

const REJECTIONS: Readonly<Record<Rejection['reason'], (rejection: Loose) => string>> = {
  queue_full: (rejection) => {
    const max = figure(rejection, 'queueLengthMax');
    const owner = { tenant: 'of its tenant', agent: 'of its agent' }[String(rejection['of'])] ?? '';
    return `the queue ${owner ? `${owner} ` : ''}was full${max === null ? '' : ` (${plural(max, 'call')})`}`;
  },
  queue_timeout: (rejection) => `it timed out in the queue${after(rejection, 'waitedMs')}`,
  infeasible: (rejection) => {
    const estimate = figure(rejection, 'estimateMs');
    const how = 'isStalled' in rejection ? 'at least' : 'about';
    return `its expected wait${estimate === null ? '' : ` of ${how} ${duration(estimate)}`} exceeded its deadline`;
  },
  busy: () => 'no slot was free, and the call did not allow queueing',
  paused: (rejection) => {
    const by =
      figure(rejection, 'until') === null
        ? 'by an operator'
        : 'because its upstream was overloaded';
    return `the group was paused until after the deadline, ${by}`;
  },
  upstream_limited: (rejection) => {
    const { words } = rejection as { words?: unknown };
    const message = typeof words === 'string' ? `, with the message “${words}”` : '';
    return `the upstream refused calls because of its own limit until after the deadline${message}`;
  },
  breaker_open: () =>
    'too many calls had failed at the upstream, and the breaker stayed open until after the deadline',
  members_out: () => 'every member was ejected or disabled',
  budget_exhausted: (rejection) => {
    const limit = figure(rejection, 'limitUsd');
    const left = figure(rejection, 'leftUsd');
    const window = typeof rejection['window'] === 'string' ? ` of the ${rejection['window']}` : '';
    const budget = `the budget${window}${limit === null ? '' : `, ${usd(limit)},`}`;
    if (left === null || left <= 0) return `${budget} was spent`;
    const wanted = figure(rejection, 'wantedUsd') ?? 0;
    return `it exceeded ${budget.replace(/,$/, '')}: ${usd(left)} left, about ${usd(wanted)} needed`;
  },
  draining: () => 'the group was draining and accepted no new calls',
  cancelled: () => 'an operator cancelled it',
  nested: () => 'it would have waited for its parent call, which waits for it',
  never_fits: (rejection) => {
    if ('exceeded' in rejection) return 'it alone exceeds a token limit';
    const max = figure(rejection, 'slotsPerCallMax');
    return `it needed more slots than one call may use${max === null ? '' : ` (${count(max)})`}`;
  },
};

const REFUSALS: Readonly<Record<RefusalKind, string>> = {
  egress: 'it does not serve the location where the Worker runs',
  unauthorized: 'it does not accept the key',
  quota: 'the account has no quota left',
  never_fits: 'the call is larger than it accepts',
  long_window: 'a daily or plan limit is used up',
  concurrency: 'too many concurrent calls',
  overload: 'it is short of capacity',
  tokens: 'too many tokens per minute',
  requests: 'too many requests per minute',
  ramp: 'traffic grew too quickly',
  unknown: 'it gave no reason',
  error: 'it failed, or the connection broke',
};

/** A rejection whose reason may be unknown here, because a newer Headgate reported it. */
type Loose = { readonly reason: string } & Readonly<Record<string, unknown>>;

/** Describes a rejection, as a clause after `because`. Unknown reasons are shown as they are. */
export function rejectionWords(rejection: Loose): string {
  const words = new Map<string, (rejection: Loose) => string>(Object.entries(REJECTIONS));
  return words.get(rejection.reason)?.(rejection) ?? rejection.reason.replaceAll('_', ' ');
}

/** Describes an upstream refusal, as a clause after a colon. */
export function refusalWords(kind: string): string {
  return new Map<string, string>(Object.entries(REFUSALS)).get(kind) ?? kind.replaceAll('_', ' ');
}

/** Describes the response of the upstream. null if none was reported. */
export function upstreamSentence(decision: DecisionView): string | null {
  const { upstream_said: signal, upstream_status: status } = decision;
  if (signal === null) return null;
  const answered = status === null ? '' : ` with ${status}`;
  if (signal === 'served') return `${decision.upstream} responded${answered}.`;
  const retryMs = decision.upstream_retry_after_ms;
  const pause = retryMs === null ? '' : ` It asked for a pause of ${duration(retryMs)}.`;
  return `${decision.upstream} refused it${answered}: ${refusalWords(signal)}.${pause}`;
}

function figure(rejection: Loose, name: string): number | null {
  const value = rejection[name];
  return typeof value === 'number' ? value : null;
}

function after(rejection: Loose, name: string): string {
  const ms = figure(rejection, name);
  return ms === null ? '' : ` after ${duration(ms)}`;
}
