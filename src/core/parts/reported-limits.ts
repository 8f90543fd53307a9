import type { LimitHint } from '../words/signal.ts';
import { MINUTE_MS } from './rate-limits.ts';

const DAY_MS = 24 * 60 * MINUTE_MS;

/** Limits of an upstream by the names that a group's configuration has for them. */
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
 * Takes the limits themselves from what headers tell, without what is left of them. Of two of a kind the smaller one holds.
 * Limits of other spans have no name here, and one of 0 means that the upstream does not know.
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

/** Whether two say the same. */
export function areSameLimits(one: ReportedLimits, other: ReportedLimits): boolean {
  const names = Object.keys({ ...one, ...other }) as (keyof ReportedLimits)[];
  return names.every((name) => one[name] === other[name]);
}
