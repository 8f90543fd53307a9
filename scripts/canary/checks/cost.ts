import { nameOf } from '../call.ts';
import { outcome, type Check } from '../check.ts';
import { countsOf, listed } from '../figures.ts';
import { CLOSED } from '../groups.ts';
import { sumOf } from '../metrics.ts';
import type { CanaryStage } from '../stage.ts';

/** USD per million requests, as in docs/platform-cost.md. */
const PRICES = { workerRequest: 0.3, objectRequest: 0.15 };

const PATIENCE_MS = 30_000;

/** Returns the number of grants and rejections of the group so far. */
async function decisions(stage: CanaryStage, group: string): Promise<number> {
  const { url, token } = stage.target;
  const response = await fetch(`${url}/metrics`, {
    headers: { authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  stage.sent.admin_requests += 1;
  if (!response.ok) throw new Error(`/metrics returned ${response.status}`);
  const text = await response.text();
  const sum = (name: string): number => sumOf(text, name, { group });
  return sum('headgate_grants_total') + sum('headgate_rejections_total');
}

/** Compares the platform requests for each call with the documented number. */
export const cost: Check = {
  id: 'cost',
  title: 'Platform requests for each call',
  needs: [],
  plan: ({ cost: { calls } }) => ({ calls, ms: calls * 100 }),
  groups: () => ({ cost: CLOSED }),
  async run(stage) {
    const { calls } = stage.pace.cost;
    const group = stage.group('cost');
    stage.say(`${calls} calls`);
    const before = await decisions(stage, group.name);
    const ends = [];
    for (let at = 0; at < calls; at += 1) {
      ends.push(await stage.send(group, { isKeptOpen: true, patienceMs: PATIENCE_MS }).ended);
    }
    const acquires = ((await decisions(stage, group.name)) - before) / calls;
    const unexpected = ends.filter(({ reason }) => reason !== 'busy').map(nameOf);
    const perMillion = PRICES.workerRequest + PRICES.objectRequest * acquires;
    const { sent } = stage;
    const found = `acquire requests for each call: ${acquires.toFixed(2)}; ${perMillion.toFixed(2)} USD per million such calls, without rows and duration. This run so far: ${sent.calls} calls and ${sent.admin_requests} requests to the admin API${unexpected.length > 0 ? `; unexpected responses: ${listed(countsOf(unexpected))}` : ''}`;
    const figures = { calls, acquires_per_call: acquires, usd_per_million: perMillion };
    const isWell = unexpected.length === 0 && acquires === 1;
    const meaning = isWell
      ? "Compare these figures with Cloudflare's analytics for the same minutes (Worker requests, object requests, rows, duration) and with platform-cost.md."
      : 'The counters do not match the calls. Either the pool restarted during the check, or calls cost more than documented.';
    return outcome(isWell, found, meaning, figures);
  },
};
