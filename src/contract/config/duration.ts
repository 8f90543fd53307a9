import * as z from 'zod';

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

const DURATION = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)$/;

/** Parses a duration such as `500ms`, `2s`, `5m` or `1h`. Returns NaN for any other text. */
export function durationMs(written: string): number {
  const [, amount, unit] = DURATION.exec(written) ?? [];
  return Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS];
}

/** A duration as text, between two durations in the same notation. */
export function durationSchema(least: string, most: string) {
  return z
    .string()
    .regex(DURATION, 'expected a duration like 500ms, 2s, 5m or 1h')
    .refine(
      (written) =>
        !(durationMs(written) < durationMs(least) || durationMs(written) > durationMs(most)),
      { error: `must be between ${least} and ${most}` },
    );
}
