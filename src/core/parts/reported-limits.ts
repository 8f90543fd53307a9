import type { LimitHint } from '../words/signal.ts';
import { MINUTE_MS } from './rate-limits.ts';

const DAY_MS = 24 * 60 * MINUTE_MS;

/** Limits of an upstream, by their names in a group's configuration. */
export type ReportedLimits = Readonly<
  Partial<Record<'rpm' | 'tpm' | 'itpm' | 'otpm' | 'rpd' | 'tpd', number>>
>;

const PER_MINUTE = {
  requests: 'rpm',
  tokens: 'tpm',
  input_tokens: 'itpm',
  output_tokens: 'otpm',
} as const;

const PER_DAY = { requests: 'rpd', tokens: 'tpd' } as const;

/**
 * Returns the limits in headers, without the remaining amounts. Of two values for one limit, the lower one applies.
 * Limits over other windows have no name here. A limit of 0 means that the upstream does not know it.
 */
export function limitsReported(hints: readonly LimitHint[]): ReportedLimits {
  const reported: Partial<Record<keyof ReportedLimits, number>> = {};
  for (const { dimension, windowMs, limit } of hints) {
    const name =
      windowMs === MINUTE_MS
        ? PER_MINUTE[dimension]
        : windowMs === DAY_MS && (dimension === 'requests' || dimension === 'tokens')
          ? PER_DAY[dimension]
          : null;
    if (name === null || limit === null || limit <= 0) continue;
    reported[name] = Math.min(limit, reported[name] ?? Infinity);
  }
  return reported;
}

export function areSameLimits(one: ReportedLimits, other: ReportedLimits): boolean {
  const names = Object.keys({ ...one, ...other }) as (keyof ReportedLimits)[];
  return names.every((name) => one[name] === other[name]);
}
