import { setTimeout as delay } from 'node:timers/promises';
import { outcome, type Check } from '../check.ts';
import { bodyOf, CLOSED } from '../groups.ts';

/** Maximum share of requests that wait for the configuration, not counting the first of each isolate. */
const WAITS_MAX = 0.2;

const PATIENCE_MS = 30_000;

/** Counts the isolates that respond, and their requests that wait for the configuration. */
export const isolates: Check = {
  id: 'isolates',
  title: 'Isolates, and waits for the configuration',
  needs: [],
  plan: ({ isolates: { calls, everyMs } }) => ({ calls, ms: calls * everyMs }),
  groups: () => ({ isolates: CLOSED }),
  async run(stage) {
    const { calls, everyMs } = stage.pace.isolates;
    const group = stage.group('isolates');
    stage.say(`${calls} calls, each on its own connection`);
    const seen = new Map<string, { readonly reads: number; readonly waits: number }>();
    for (let at = 0; at < calls; at += 1) {
      await stage.send(group, { patienceMs: PATIENCE_MS }).ended;
      const one = bodyOf('isolate', await stage.admin('GET /isolate'));
      seen.set(one.id, { reads: one.config_reads, waits: one.config_waits });
      await delay(everyMs, undefined, { signal: stage.signal });
    }
    const sum = (of: 'reads' | 'waits'): number =>
      [...seen.values()].reduce((total, each) => total + each[of], 0);
    const [reads, waits] = [sum('reads'), sum('waits')];
    const later = Math.max(0, waits - seen.size) / Math.max(1, reads);
    const share = waits / Math.max(1, reads);
    const found = `isolates for ${calls} calls: ${seen.size}; requests there: ${reads}; of these, waited for the configuration: ${waits} (${(share * 100).toFixed(1)} %)`;
    const isWell = later <= WAITS_MAX;
    const meaning = isWell
      ? 'Few calls except the first of an isolate wait for the configuration.'
      : 'Many calls make an additional round trip for the configuration.';
    return outcome(isWell, found, meaning, { isolates: seen.size, reads, waits });
  },
};
