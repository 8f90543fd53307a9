/** Formats numbers for people. The server, the dashboard and the command line share these functions. */

/** Formats a count with its noun, as in `1 call` and `1,200 calls`. `many` is the plural, by default with an `s`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}

/** Units of time, longest first. From `fromMs` on, the next shorter unit would round to a whole one of this unit. */
const SPANS = [
  { ms: 86_400_000, fromMs: 84_600_000, one: 'day' },
  { ms: 3_600_000, fromMs: 3_570_000, one: 'hour' },
  { ms: 60_000, fromMs: 59_500, one: 'minute' },
  { ms: 1_000, fromMs: 0, one: 'second' },
] as const;

/** Formats a duration in its longest unit, as in `1 minute` and `3 days`. */
export function spanWords(ms: number): string {
  const unit = SPANS.find((each) => ms >= each.fromMs) ?? SPANS[3];
  return plural(Math.max(1, Math.round(ms / unit.ms)), unit.one);
}

/**
 * Formats US dollars with cents from $1 on and with three significant digits below, as in `$12.50`, `$0.002` and `$0`.
 */
export function dollars(usd: number): string {
  if (usd === 0) return '$0';
  if (Math.abs(usd) >= 1) {
    const digits = Number.isInteger(usd) ? 0 : 2;
    const amount = usd.toLocaleString('en', {
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
    });
    return `$${amount}`;
  }
  return `$${usd.toLocaleString('en', { maximumSignificantDigits: 3 })}`;
}

/** Formats a share in percent. A share that is not whole is never shown as 0 % or 100 %. */
export function percent(part: number, whole: number): string {
  const exact = whole <= 0 ? 100 : (100 * part) / whole;
  if (exact <= 0 || exact >= 100) return `${Math.round(exact)} %`;
  if (exact < 1) return 'less than 1 %';
  return `${Math.min(99, Math.round(exact))} %`;
}

/** Formats the first names of a list and the number of the others. */
export function namesWords(names: readonly string[], most = 3): string {
  const shown = names.slice(0, most);
  const left = names.length - shown.length;
  if (left > 0) return `${shown.join(', ')} and ${left.toLocaleString('en')} more`;
  return shown.length < 2 ? shown.join('') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`;
}
