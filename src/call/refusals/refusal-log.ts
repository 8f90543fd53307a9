import { BoundedMap } from '../../core/parts/bounded-map.ts';
import { idOf } from '../../core/parts/refusal-rows.ts';
import type { RefusalCount } from '../../contract/refusals.ts';
import { logEvent } from '../../runtime/log.ts';

/** Minimum time between two lines with the same facts. */
const EVERY_MS = 60_000;

/** Maximum lines of one flush, except the first one of each reason. The rest share one line. */
const LINES_MAX = 20;

/** Maximum facts whose last line is remembered. */
const REMEMBERED_MAX = 512;

interface LastLine {
  readonly at: number;
  readonly leftOut: number;
}

const lastLines = new BoundedMap<string, LastLine>(REMEMBERED_MAX);

/** Logs refused calls: one line a minute for the same facts, with the number of calls since the previous line. */
export function logRefusals(counts: readonly RefusalCount[], now: number): void {
  let lines = 0;
  let others = 0;
  const reasons = new Set<string>();
  for (const one of counts.toSorted((a, b) => b.count - a.count)) {
    const id = idOf(one);
    const last = lastLines.get(id);
    const count = one.count + (last?.leftOut ?? 0);
    if (last !== undefined && now - last.at < EVERY_MS) {
      lastLines.set(id, { at: last.at, leftOut: count });
    } else if (lines < LINES_MAX || !reasons.has(one.reason)) {
      lines += 1;
      reasons.add(one.reason);
      lastLines.set(id, { at: now, leftOut: 0 });
      const { reason, key, team, group, upstream, model, message } = one;
      logEvent('call_refused', { reason, key, team, group, upstream, model, count, message });
    } else {
      others += one.count;
    }
  }
  if (others > 0) logEvent('calls_refused', { count: others });
}
