/**
 * Measures what 5,000 parked calls cost the object that holds them, and all who speak to it. On plain
 * workerd, with real connections: a status call, a refusal and a whole call with its slot, in turns on
 * two Headgates of which one has an empty queue. `--waiters <n>`: another number of parked calls.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import type { ClientRequest } from 'node:http';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Serve } from '../scripts/serve/start-serve.ts';
import { startServe } from '../scripts/serve/start-serve.ts';
import { residentMiB } from '../test/e2e/support/lifecycle-memory.ts';
import type { StrictUpstream } from '../test/strict-upstream/strict-upstream.ts';
import { startStrictUpstream } from '../test/strict-upstream/strict-upstream.ts';

const ADMIN_TOKEN = 'bench-admin-token';

/** Tenants that hold a slot each and wait for more; one slot is left, for who measures. */
const TENANTS = 50;
const ROUNDS = 20;
const PROBES_A_ROUND = 100;
const WARM_UP = 300;

/** The largest p99 with a full queue, as a multiple of that with an empty one. */
const AIM = 2;

/** A parked call is asked for anew every so often; the load of that belongs to what is measured. */
const SETTLE_MS = 3_000;

/** Several calls at a time while the queue fills, so that no backlog of connections is refused. */
const FILLERS = 64;

interface QueueObjectPosition {
  readonly serve: Serve;
  readonly parked: ClientRequest[];
}

interface QueueObjectReply {
  readonly status: number;
  readonly text: string;
}

interface Probe {
  readonly name: string;
  /** True: it went as it should. */
  readonly run: (place: QueueObjectPosition) => Promise<boolean>;
}

const probeAgent = new Agent({ keepAlive: true, maxSockets: 1 });

function send(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string | null,
): Promise<QueueObjectReply> {
  return new Promise((resolve, reject) => {
    const method = body === null ? 'GET' : 'POST';
    const outgoing = request(url, { method, headers, agent: probeAgent }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => (text += part));
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    outgoing.once('error', reject);
    outgoing.end(body);
  });
}

const chatBody = JSON.stringify({ model: 'parked', messages: [{ role: 'user', content: 'Go.' }] });

const chatHeaders = (tenant: string): Record<string, string> => ({
  'content-type': 'application/json',
  authorization: 'Bearer bench-key',
  'x-tenant': tenant,
});

const chatUrl = ({ serve }: QueueObjectPosition): string =>
  `${serve.url}/practice/v1/chat/completions`;

const status = ({ serve }: QueueObjectPosition): Promise<QueueObjectReply> =>
  send(
    `${serve.url}/admin/api/groups/parked/status`,
    { authorization: `Bearer ${ADMIN_TOKEN}` },
    null,
  );

const PROBED: readonly Probe[] = [
  { name: 'status', run: async (place) => (await status(place)).status === 200 },
  {
    name: 'refusal of a call that does not wait',
    async run(place) {
      const headers = { ...chatHeaders('tenant-0'), 'headgate-max-wait': '0' };
      return (await send(chatUrl(place), headers, chatBody)).status === 429;
    },
  },
  {
    name: 'call with a slot, acquired and released',
    run: async (place) =>
      (await send(chatUrl(place), chatHeaders('probe'), chatBody)).status === 200,
  },
];

/** Sends a call that waits or holds until the end of the measurement, on a connection of its own. */
function park(place: QueueObjectPosition, tenant: string): void {
  const headers = { ...chatHeaders(tenant), 'x-strict-first-byte-delay-ms': '3600000' };
  const outgoing = request(chatUrl(place), { method: 'POST', headers, agent: false });
  outgoing.on('error', () => undefined);
  outgoing.end(chatBody);
  place.parked.push(outgoing);
}

async function gauges(place: QueueObjectPosition): Promise<{ in_use: number; queued: number }> {
  return JSON.parse((await status(place)).text) as { in_use: number; queued: number };
}

/** Parks so many calls, those of all tenants in turn, and waits until they stand in the queue. */
async function fill(place: QueueObjectPosition, holders: number, waiters: number): Promise<void> {
  const total = place.parked.length + holders + waiters;
  while (place.parked.length < total) {
    for (let i = 0; i < FILLERS && place.parked.length < total; i += 1) {
      park(place, `tenant-${place.parked.length % TENANTS}`);
    }
    const wanted = place.parked.length;
    for (;;) {
      const { in_use, queued } = await gauges(place);
      if (in_use + queued >= wanted) break;
      await delay(5);
    }
  }
}

async function measure(probe: Probe, place: QueueObjectPosition, count: number): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < count; i += 1) {
    const from = performance.now();
    if (!(await probe.run(place))) throw new Error(`${probe.name}: not what was expected`);
    times.push(performance.now() - from);
  }
  return times;
}

/** The times of each place, smallest first. In turns, so that what else the machine does hits both. */
async function compare(probe: Probe, places: readonly QueueObjectPosition[]): Promise<number[][]> {
  for (const place of places) await measure(probe, place, WARM_UP);
  const times: number[][] = places.map(() => []);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [index, place] of places.entries()) {
      times[index]?.push(...(await measure(probe, place, PROBES_A_ROUND)));
    }
  }
  return times.map((each) => each.toSorted((a, b) => a - b));
}

const at = (sorted: readonly number[], part: number): number =>
  sorted[Math.ceil(sorted.length * part) - 1] ?? Number.NaN;

/** Prints what one probe took in both places. True: the aim is met. */
function report(name: string, idle: readonly number[], full: readonly number[]): boolean {
  const ratio = at(full, 0.99) / at(idle, 0.99);
  const [before, after] = [idle, full].map(
    (sorted) => `p50 ${at(sorted, 0.5).toFixed(2)} ms, p99 ${at(sorted, 0.99).toFixed(2)} ms`,
  );
  console.log(`\n${name}\n  idle:   ${before}\n  parked: ${after}`);
  const verdict = ratio <= AIM ? 'holds' : 'MISSED';
  console.log(`  p99 parked / idle: ${ratio.toFixed(2)}, aim at most ${AIM}: ${verdict}`);
  return ratio <= AIM;
}

async function fillAndReport(place: QueueObjectPosition, waiters: number): Promise<void> {
  const workerdPid = place.serve.workerdPid();
  const before = await residentMiB(workerdPid);
  const from = performance.now();
  await fill(place, 0, waiters);
  const seconds = (performance.now() - from) / 1_000;
  await delay(SETTLE_MS);
  const after = await residentMiB(workerdPid);
  const perCallKiB = ((after - before) * 1_024) / waiters;
  console.log(
    `${waiters} calls parked in ${seconds.toFixed(1)} s: workerd went from ${before.toFixed(0)} ` +
      `to ${after.toFixed(0)} MiB, ${perCallKiB.toFixed(1)} KiB a parked call, connection included`,
  );
}

async function run(
  idle: QueueObjectPosition,
  full: QueueObjectPosition,
  waiters: number,
): Promise<boolean> {
  for (const place of [idle, full]) {
    await fill(place, TENANTS, 0);
    for (const probe of PROBED) await measure(probe, place, WARM_UP);
  }
  await fillAndReport(full, waiters);
  let allHold = true;
  for (const probe of PROBED) {
    const [ofIdle = [], ofFull = []] = await compare(probe, [idle, full]);
    allHold = report(probe.name, ofIdle, ofFull) && allHold;
  }
  const { in_use, queued } = await gauges(full);
  if (in_use !== TENANTS || queued !== waiters) {
    throw new Error(`${in_use} in use and ${queued} queued at the end, not ${waiters}`);
  }
  return allHold;
}

async function startPlace(upstream: StrictUpstream, dataDir: string): Promise<QueueObjectPosition> {
  const group = {
    name: 'parked',
    match: { upstreams: ['practice'] },
    limits: { max_concurrency: TENANTS + 1 },
    queue: { max_length: 5_000, timeout_ms: 3_600_000 },
    fairness: { by: ['header:x-tenant'], max_concurrency_each: 1 },
    holds: { release_cooldown_ms: 0, cancel_cooldown_ms: 0 },
  };
  const upstreams = [{ id: 'practice', base_url: upstream.url, dialect: 'openai' }];
  const serve = await startServe({
    port: 0,
    dataDir,
    adminToken: ADMIN_TOKEN,
    config: { upstreams, groups: [group] },
    // The forwarder's own memory and time are none of the object's.
    forwarder: false,
    env: {},
  });
  return { serve, parked: [] };
}

async function main(): Promise<boolean> {
  const { values } = parseArgs({ options: { waiters: { type: 'string', default: '5000' } } });
  const dir = await mkdtemp(join(tmpdir(), 'headgate-bench-'));
  const upstream = await startStrictUpstream();
  const places: QueueObjectPosition[] = [];
  const start = async (name: string): Promise<QueueObjectPosition> => {
    const place = await startPlace(upstream, join(dir, name));
    places.push(place);
    return place;
  };
  try {
    return await run(await start('idle'), await start('full'), Number(values.waiters));
  } finally {
    for (const call of places.flatMap(({ parked }) => parked)) call.destroy();
    probeAgent.destroy();
    await Promise.all(places.map(({ serve }) => serve.kill9()));
    await upstream.close();
    await rm(dir, { recursive: true, force: true });
  }
}

if (!(await main())) process.exitCode = 1;
