/**
 * Measures leases over HTTP beside proxied calls, in one run on one plain workerd: the same callers do the one and the other in
 * turns. A lease is asked for and given back, two requests; a call is one, to an upstream that answers at once.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { describePlace } from './support/place.ts';
import { percent, printTable } from './support/report.ts';
import { median } from './support/rounds.ts';
import { startHeadgate } from './support/subjects.ts';
import { startUpstream } from './support/upstream.ts';

const { values } = parseArgs({
  options: {
    callers: { type: 'string', default: '32' },
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '3' },
  },
});

const GROUP = 'bench';

async function ask(url: string, method: string, path: string, body?: object): Promise<string> {
  const answer = await fetch(url + path, {
    method,
    headers: { authorization: 'Bearer sk-bench', 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text;
}

async function call(url: string): Promise<void> {
  const messages = [{ role: 'user', content: 'Hi' }];
  await ask(url, 'POST', '/bench/v1/chat/completions', { model: 'gpt-4o-mini', messages });
}

async function lease(url: string): Promise<void> {
  const { lease: token } = JSON.parse(await ask(url, 'POST', '/leases', { group: GROUP })) as {
    readonly lease: string;
  };
  await ask(url, 'DELETE', `/leases/${token}`);
}

async function renew(url: string, token: string): Promise<void> {
  await ask(url, 'PUT', `/leases/${token}`);
}

/** Has all callers do the same over and over, and counts how often a second. */
async function perSecond(work: (caller: number) => Promise<void>): Promise<number> {
  const untilAt = performance.now() + Number(values.seconds) * 1_000;
  const startedAt = performance.now();
  let done = 0;
  const run = async (caller: number): Promise<void> => {
    while (performance.now() < untilAt) {
      await work(caller);
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: Number(values.callers) }, (_, caller) => run(caller)));
  return done / ((performance.now() - startedAt) / 1_000);
}

const dir = await mkdtemp(join(tmpdir(), 'headgate-bench-'));
const upstream = await startUpstream();
const config = {
  upstreams: [{ id: 'bench', base_url: upstream.url, dialect: 'openai' }],
  leases: 'open',
  groups: [{ name: GROUP, match: { upstreams: ['bench'] }, limits: { max_concurrency: 1_000 } }],
};
const headgate = await startHeadgate({
  name: 'Headgate',
  dir,
  upstreamUrl: upstream.url,
  group: 'configured',
  config,
});
try {
  console.log(describePlace(dir));
  const url = `http://127.0.0.1:${headgate.port}`;
  const held = await Promise.all(
    Array.from({ length: Number(values.callers) }, async () => {
      const answer = await ask(url, 'POST', '/leases', { group: GROUP });
      return (JSON.parse(answer) as { readonly lease: string }).lease;
    }),
  );
  const subjects = [
    { name: 'proxied calls', work: () => call(url), all: [] as number[] },
    { name: 'leases: asked for and given back', work: () => lease(url), all: [] as number[] },
    {
      name: 'renewals',
      work: (caller: number) => renew(url, held[caller] ?? ''),
      all: [] as number[],
    },
  ];
  // The first round warms up, and counts for nothing.
  for (let round = 0; round <= Number(values.rounds); round += 1) {
    for (const { work, all } of subjects) {
      const each = await perSecond(work);
      if (round > 0) all.push(each);
    }
  }
  const [calls] = subjects;
  printTable([
    ['', 'a second', 'of calls'],
    ...subjects.map(({ name, all }) => [
      name,
      Math.round(median(all)).toString(),
      percent(median(all.map((each, round) => each / (calls?.all[round] ?? NaN)))),
    ]),
  ]);
  for (const token of held) await ask(url, 'DELETE', `/leases/${token}`);
} finally {
  await headgate.stop();
  await upstream.close();
  await rm(dir, { recursive: true, force: true });
}
