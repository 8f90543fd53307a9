import { groupSchema } from '../../../src/contract/config/group.ts';
import { nameOf, openCall, type CanaryCallEnd } from '../call.ts';
import { outcome, type Check } from '../check.ts';
import { quantile } from '../figures.ts';
import { CLOSED, type CanaryGroup, type GroupBody } from '../groups.ts';
import type { CanaryStage } from '../stage.ts';

/** Longer round trips mean that the object is not nearby. */
const NEAR_MS = 500;

const PATIENCE_MS = 30_000;

/** Where the objects of a group may be created. */
const LOCATIONS = groupSchema.shape.location.unwrap().unwrap().options;

const labelOf = (location: string): string => `at-${location}`;

interface Trip {
  readonly location: string;
  readonly times: readonly number[];
  readonly unexpected: readonly string[];
}

/** Measures the round trip to the Worker alone, with requests that involve no object. */
async function toWorker(stage: CanaryStage): Promise<Trip> {
  const url = `${stage.target.url}/healthz`;
  const ends: CanaryCallEnd[] = [];
  for (let at = 0; at <= stage.pace.latency.calls; at += 1) {
    const options = { url, method: 'GET', headers: {}, body: '', agent: stage.agent } as const;
    ends.push(await openCall({ ...options, patienceMs: PATIENCE_MS }).ended);
  }
  return tripOf('the Worker alone', ends, ({ status }) => status === 200);
}

/** Measures rejections, each of which takes one acquire request. */
async function toGroup(stage: CanaryStage, location: string, group: CanaryGroup): Promise<Trip> {
  stage.say(location);
  const ends: CanaryCallEnd[] = [];
  for (let at = 0; at <= stage.pace.latency.calls; at += 1) {
    ends.push(await stage.send(group, { isKeptOpen: true, patienceMs: PATIENCE_MS }).ended);
  }
  return tripOf(location, ends, ({ reason }) => reason === 'busy');
}

/** Ignores the first call, which connects and creates the object. */
function tripOf(
  location: string,
  ends: readonly CanaryCallEnd[],
  isWell: (end: CanaryCallEnd) => boolean,
): Trip {
  const unexpected = ends.filter((end) => !isWell(end)).map(nameOf);
  return { location, times: ends.slice(1).map(({ ms }) => ms), unexpected };
}

/** Reads the wait that Headgate reports for served calls. */
async function grantWaits(stage: CanaryStage): Promise<number[]> {
  const { upstream } = stage;
  if (upstream === null) return [];
  stage.say('grants');
  const waits: number[] = [];
  for (let at = 0; at < stage.pace.latency.grants; at += 1) {
    const { headers } = await stage.sendUpstream(upstream.small(), PATIENCE_MS * 2).ended;
    const waited = headers['headgate-wait-ms'];
    if (typeof waited === 'string') waits.push(Number(waited));
  }
  return waits;
}

const p50 = (times: readonly number[]): number => Math.round(quantile(times, 0.5));
const p95 = (times: readonly number[]): number => Math.round(quantile(times, 0.95));

/** Measures the time that an acquire request adds to a call, by location of the object. */
export const latency: Check = {
  id: 'latency',
  title: 'Time of an acquire request, by location of the object',
  needs: [],
  plan: ({ latency: { calls, grants } }, hasUpstream) => ({
    calls: (LOCATIONS.length + 2) * (calls + 1),
    ms: (LOCATIONS.length + 2) * calls * 100,
    ...(hasUpstream && { paidCalls: grants }),
  }),
  groups: () =>
    Object.fromEntries([
      ['near', CLOSED],
      ...LOCATIONS.map((location): [string, GroupBody] => [
        labelOf(location),
        { ...CLOSED, location },
      ]),
    ]),
  async run(stage) {
    const worker = await toWorker(stage);
    const near = await toGroup(stage, 'near', stage.group('near'));
    const trips = [near];
    for (const location of LOCATIONS) {
      trips.push(await toGroup(stage, location, stage.group(labelOf(location))));
    }
    const waits = await grantWaits(stage);
    const added = ({ times }: Trip): number => Math.max(0, p50(times) - p50(worker.times));
    const unexpected = [worker, ...trips].flatMap((trip) => trip.unexpected);
    const far = trips.slice(1).map((trip) => `${trip.location} ${added(trip)}`);
    const granted = waits.length === 0 ? '' : `; grants waited ${p50(waits)} ms (p50)`;
    const wrong = unexpected.length === 0 ? '' : `; unexpected response: ${unexpected[0]}`;
    const found = `an acquire request adds ${added(near)} ms (p50) to an object created from here; by location: ${far.join(', ')} ms${granted}${wrong}`;
    const figures = {
      worker_p50_ms: p50(worker.times),
      acquire: trips.map((trip) => ({
        place: trip.location,
        added_p50_ms: added(trip),
        p50_ms: p50(trip.times),
        p95_ms: p95(trip.times),
      })),
      grant_wait_ms: waits.length === 0 ? null : { p50: p50(waits), p95: p95(waits) },
    };
    const isWell = unexpected.length === 0 && added(near) < NEAR_MS;
    const meaning = isWell
      ? 'Each call waits this long for a slot. Choose the location that adds the least for your groups.'
      : 'Requests to the object are slow. See region and placement in docs/production.md.';
    return outcome(isWell, found, meaning, figures);
  },
};
