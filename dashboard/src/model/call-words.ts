import type * as z from 'zod';
import type { decisionSchema } from '../../../src/contract/admin/observation-schemas.ts';
import type { Frozen } from '../../../src/contract/frozen.ts';
import type { Rejection } from '../../../src/core/words/rejection.ts';
import type { RefusalKind } from '../../../src/core/words/signal.ts';
import type { PassedOver, PlacedBy, WaitCause } from '../../../src/core/parts/decision-log.ts';
import { count, duration, usd } from '../format.ts';

/** One decision of a group, as the API tells it. */
export type DecisionView = Frozen<z.output<typeof decisionSchema>>;

/** Why a call waited, in the words of a list. */
export const WAIT_WORDS: Readonly<Record<WaitCause, string>> = {
  operator_pause: 'paused by an operator',
  upstream_pause: 'the upstream wanted no calls',
  breaker: 'the breaker was open',
  members_out: 'every member was out',
  settling: 'the group had just been reset',
  cap: 'its tenant or agent had all it may',
  slots: 'all slots in use',
  rates: 'rate limit used up',
  member: 'waited for the member it belongs to',
  order: 'others went first',
  elsewhere: 'another group was full',
};

/** Why a call waited, in a sentence. */
export const WAIT_SENTENCES: Readonly<Record<WaitCause, string>> = {
  operator_pause: 'An operator had paused the group.',
  upstream_pause: 'The upstream had asked for no calls for a while.',
  breaker:
    'The upstream had failed too often: the breaker was open, or was letting one probe through.',
  members_out:
    'Every member was out: its key was refused, its quota used up, or an operator had taken it out.',
  settling:
    'The group had been reset or routed anew a moment before, and let older calls come back first.',
  cap: 'Its tenant, its agent, or calls that wait in other groups had as many slots as they may.',
  slots: 'All slots were in use, or fewer were free than it takes.',
  rates: 'A limit of requests or tokens was used up.',
  member:
    'The member that it belongs to had no room. Others had, but its prompts are cached there.',
  order: 'There was room, but others went first.',
  elsewhere: 'There was room, but another group that it also needs was full.',
};

const PLACED_WORDS: Readonly<Record<PlacedBy, string>> = {
  sole: 'the only one',
  affinity: 'where its agent or caller ran before, so its prompts are cached there',
  left: 'because the member that it belongs to would have had no room in time',
  load: 'which had the largest part of its slots free',
  dry_run: 'room or not, as in a dry run',
};

const PASSED_OVER_WORDS: Readonly<Record<PassedOver, string>> = {
  excluded: 'had refused it',
  out: 'was out',
  disabled: 'is switched off',
  paused: 'was paused by its upstream',
  breaker: 'had failed too often',
  budget: 'had spent its budget',
  slots: 'was full',
  rates: 'had used up a rate limit',
  tier: 'is of a later tier',
  load: 'was busier',
};

/** Tells where a call went, and why not elsewhere, in a sentence. Null: the group names no members. */
export function placedSentence({ placed }: Pick<DecisionView, 'placed'>): string | null {
  if (placed === undefined) return null;
  const others = placed.others.map(({ member, cause }) => `${member} ${PASSED_OVER_WORDS[cause]}`);
  const rest = others.length === 0 ? '' : ` Of the others: ${others.join(', ')}.`;
  return `It went to ${placed.member}, ${PLACED_WORDS[placed.by]}.${rest}`;
}

const REJECTIONS: Readonly<Record<Rejection['reason'], (rejection: Loose) => string>> = {
  queue_full: (rejection) => {
    const max = figure(rejection, 'queueLengthMax');
    const whose = { tenant: 'of its tenant', agent: 'of its agent' }[String(rejection['of'])] ?? '';
    return `the queue ${whose ? `${whose} ` : ''}was full${max === null ? '' : `, with ${count(max)} calls`}`;
  },
  queue_timeout: (rejection) => `it had waited as long as it may${after(rejection, 'waitedMs')}`,
  infeasible: (rejection) => {
    const estimate = figure(rejection, 'estimateMs');
    const how = 'isStalled' in rejection ? 'at least' : 'about';
    return `it would have waited past its deadline${estimate === null ? '' : `: ${how} ${duration(estimate)}`}`;
  },
  busy: () => 'no slot was free, and the call did not allow queueing',
  paused: (rejection) => {
    const by =
      figure(rejection, 'until') === null
        ? 'by its operator'
        : 'because its upstream was overloaded';
    return `the group was paused until after the deadline, ${by}`;
  },
  upstream_limited: (rejection) => {
    const { words } = rejection as { words?: unknown };
    const said = typeof words === 'string' ? `, with the message “${words}”` : '';
    return `the upstream refused calls because of its own limit until after the deadline${said}`;
  },
  breaker_open: () =>
    'too many calls had failed at the upstream, and the breaker stayed open until after the deadline',
  members_out: () => 'every member was out: keys refused, quotas used up, or switched off',
  budget_exhausted: (rejection) => {
    const limit = figure(rejection, 'limitUsd');
    const left = figure(rejection, 'leftUsd');
    const window = typeof rejection['window'] === 'string' ? ` of the ${rejection['window']}` : '';
    const budget = `the budget${window}${limit === null ? '' : `, ${usd(limit)},`}`;
    if (left === null || left <= 0) return `${budget} was spent`;
    const wanted = figure(rejection, 'wantedUsd') ?? 0;
    return `it did not fit into ${budget.replace(/,$/, '')}: ${usd(left)} left, about ${usd(wanted)} wanted`;
  },
  draining: () => 'the group was draining and took no new calls',
  cancelled: () => 'an operator took it out of the queue',
  nested: () => 'it would have waited for its own parent, which waits for it',
  never_fits: (rejection) => {
    if ('exceeded' in rejection) return 'it alone is larger than a limit of tokens';
    const max = figure(rejection, 'slotsPerCallMax');
    return `it wanted more slots than one call may have${max === null ? '' : `, which are ${count(max)}`}`;
  },
};

const REFUSALS: Readonly<Record<RefusalKind, string>> = {
  egress: 'it serves nobody from where the Worker runs',
  unauthorized: 'it does not accept the key',
  quota: 'the account has nothing left',
  never_fits: 'the call is larger than it ever takes',
  long_window: 'the limit of a day or a plan is used up',
  concurrency: 'too many calls at once',
  overload: 'it is short of capacity',
  tokens: 'too many tokens a minute',
  requests: 'too many requests a minute',
  ramp: 'calls became more too quickly',
  unknown: 'it did not say why',
  error: 'it failed, or the connection broke',
};

/** A rejection as far as this page must know it: a newer Headgate has reasons that are not known here. */
type Loose = { readonly reason: string } & Readonly<Record<string, unknown>>;

/** Why a call was rejected, as it follows on `because`. A reason of a newer Headgate stands as it is. */
export function rejectionWords(rejection: Loose): string {
  const words = new Map<string, (rejection: Loose) => string>(Object.entries(REJECTIONS));
  return words.get(rejection.reason)?.(rejection) ?? rejection.reason.replaceAll('_', ' ');
}

/** Why an upstream refused a call, as it follows on a colon. */
export function refusalWords(kind: string): string {
  return new Map<string, string>(Object.entries(REFUSALS)).get(kind) ?? kind.replaceAll('_', ' ');
}

/** Tells what the upstream said to a call, in a sentence. Null: the group was told nothing. */
export function upstreamSentence(decision: DecisionView): string | null {
  const { upstream_said: said, upstream_status: status } = decision;
  if (said === null) return null;
  const answered = status === null ? '' : ` with ${status}`;
  if (said === 'served') return `${decision.upstream} answered${answered}.`;
  const retryMs = decision.upstream_retry_after_ms;
  const wish = retryMs === null ? '' : ` It asked to be left alone for ${duration(retryMs)}.`;
  return `${decision.upstream} refused it${answered}: ${refusalWords(said)}.${wish}`;
}

function figure(rejection: Loose, name: string): number | null {
  const value = rejection[name];
  return typeof value === 'number' ? value : null;
}

function after(rejection: Loose, name: string): string {
  const ms = figure(rejection, name);
  return ms === null ? '' : `, ${duration(ms)}`;
}
