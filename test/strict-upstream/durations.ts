// The ways in which providers write how long something takes. All round up to a whole millisecond or
// more: a client that waits for as long as it is told must find that the time has come.

const wholeMs = (ms: number): number => Math.ceil(Math.max(0, ms));

/** A duration as Go prints it: `0s`, `12ms`, `1.78s`, `6m0s`, `2h31m16.752s`. */
export function goDuration(ms: number): string {
  const whole = wholeMs(ms);
  if (whole > 0 && whole < 1_000) return `${whole}ms`;
  const hours = Math.floor(whole / 3_600_000);
  const minutes = Math.floor(whole / 60_000) % 60;
  const seconds = `${(whole % 60_000) / 1_000}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}

/** Seconds with fractions: `1.78`. */
export const fractionalSeconds = (ms: number): string => String(wholeMs(ms) / 1_000);

/** Whole seconds, one at the least: the form of `Retry-After`. */
export const wholeSeconds = (ms: number): string => String(Math.max(1, Math.ceil(ms / 1_000)));

/** An instant as RFC 3339 in whole seconds: `2025-08-21T12:40:59Z`. */
export const rfc3339 = (at: number): string =>
  new Date(Math.ceil(at / 1_000) * 1_000).toISOString().replace('.000Z', 'Z');

/** An instant as Z.ai writes it, in Beijing's time and without saying so: `2026-10-06 21:31:39`. */
export const beijingTime = (at: number): string =>
  rfc3339(at + 8 * 3_600_000)
    .replace('T', ' ')
    .replace('Z', '');
