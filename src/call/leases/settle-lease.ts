import type { ReleaseRequest } from '../../contract/leases.ts';
import { mayReportUsage } from '../../routing/key-access.ts';
import { EachSecond, steadyClock } from '../../runtime/clock.ts';
import { logEvent } from '../../runtime/log.ts';
import type { Settle } from '../acquire/admission.ts';
import type { AuthenticatedCall } from '../call.ts';
import type { Metering } from '../metering.ts';
import type { LeaseToken } from './lease-token.ts';
import { estimateOf, meteringOf, planHeld } from './plan-lease.ts';

/** Measures the call of a lease that is held. null if none of its groups counts usage. */
function meteringOfHeld(call: AuthenticatedCall, lease: LeaseToken): Metering | null {
  const held = planHeld(call, lease);
  const metering = meteringOf(held, lease.wanted);
  return held.member === null ? metering : (metering?.at(held.member) ?? null);
}

/** Minimum time between two log lines about reported usage that does not count. */
const LOGGED_EACH_SECOND = 1;

const logged = new EachSecond(LOGGED_EACH_SECOND);

/**
 * Settles a lease by the usage that its holder reports. null if no group counts usage, or none was reported.
 *
 * Headgate did not see the call, so the figures are a claim. If the key has no right to report usage, the reservation
 * counts: a larger charge would spend the budget of others, and a smaller one would make leases free.
 */
export function settleBy(
  call: AuthenticatedCall,
  lease: LeaseToken,
  usage: ReleaseRequest['usage'],
): { readonly counts: 'reported' | 'reserved'; readonly settle: Settle | undefined } | null {
  const metering = usage === undefined ? null : meteringOfHeld(call, lease);
  if (usage === undefined || metering === null) return null;
  if (!mayReportUsage(call.caller.key)) {
    noteIgnored(call, lease, usage);
    return { counts: 'reserved', settle: undefined };
  }
  const { inputTokens } = estimateOf(lease.wanted);
  const cacheReadTokens = usage.cached_tokens ?? 0;
  const outputTokens = usage.output_tokens ?? 0;
  const counted = {
    inputTokens: Math.max(usage.input_tokens ?? inputTokens ?? 0, cacheReadTokens),
    cacheReadTokens,
    cacheWriteTokens: 0,
    outputTokens,
  };
  const settle = metering.settlement({
    end: () => ({ usage: counted, outputTokensSeen: outputTokens }),
  });
  return { counts: 'reported', settle };
}

/** Settles a lease whose holder reports that its call was refused, by the same rule. */
export function settleRefused(call: AuthenticatedCall, lease: LeaseToken): Settle | undefined {
  return mayReportUsage(call.caller.key) ? meteringOfHeld(call, lease)?.notServed : undefined;
}

function noteIgnored(
  { caller }: AuthenticatedCall,
  { wanted, pools }: LeaseToken,
  usage: NonNullable<ReleaseRequest['usage']>,
): void {
  if (!logged.mayOneMore(steadyClock.now())) return;
  logEvent('lease_usage_ignored', {
    key: caller.gatewayKeyId,
    groups: pools.map(({ lease }) => lease.group).join(','),
    model: wanted.model ?? null,
    input_tokens: usage.input_tokens ?? null,
    output_tokens: usage.output_tokens ?? null,
  });
}
