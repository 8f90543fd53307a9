import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StrictUpstream } from '../test/strict-upstream/strict-upstream.ts';
import { startStrictUpstream } from '../test/strict-upstream/strict-upstream.ts';
import type { DemoRound } from './demo/calls.ts';
import { runRound } from './demo/calls.ts';
import { startServe } from './serve/start-serve.ts';

const CALLS = 12;
const LIMIT = 3;
const CHUNKS = 12;
const CHUNK_DELAY_MS = 90;

interface MeasuredRound extends DemoRound {
  /** Peak in flight, counted by the upstream. */
  readonly peak: number;
}

const configuration = (upstream: StrictUpstream): unknown => ({
  upstreams: [{ id: 'practice', base_url: upstream.url, dialect: 'openai', openai_at: '/v1' }],
  groups: [
    {
      name: 'practice',
      match: { upstreams: ['practice'] },
      limits: { max_concurrency: LIMIT },
    },
  ],
});

async function measure(
  upstream: StrictUpstream,
  baseURL: string,
  waitingWord: string,
): Promise<MeasuredRound> {
  upstream.reset();
  const round = await runRound({ baseURL, calls: CALLS, chunks: CHUNKS, waitingWord });
  return { ...round, peak: upstream.stats().peak };
}

function compare(direct: MeasuredRound, through: MeasuredRound): void {
  const rows: readonly (readonly [string, (round: MeasuredRound) => string])[] = [
    ['429 responses', ({ refused }) => String(refused)],
    ['calls completed', ({ completed }) => `${completed} of ${CALLS}`],
    ['peak concurrency at the upstream', ({ peak }) => String(peak)],
    ['total time', ({ totalMs }) => `${(totalMs / 1_000).toFixed(1)} s`],
  ];
  console.log(`\n${''.padEnd(41)}${'direct'.padStart(12)}${'Headgate'.padStart(12)}`);
  for (const [name, value] of rows) {
    console.log(`  ${name.padEnd(39)}${value(direct).padStart(12)}${value(through).padStart(12)}`);
  }
}

async function main(): Promise<boolean> {
  console.log('Starting Headgate on workerd, and an upstream that allows 3 concurrent calls ...');
  const dataDir = await mkdtemp(join(tmpdir(), 'headgate-demo-'));
  const upstream = await startStrictUpstream({
    limit: LIMIT,
    chunks: CHUNKS,
    chunkDelayMs: CHUNK_DELAY_MS,
  });
  try {
    const serve = await startServe({ port: 0, dataDir, config: configuration(upstream) });
    try {
      console.log(`\n${CALLS} streaming calls directly to the upstream:\n`);
      const direct = await measure(upstream, `${upstream.url}/v1`, 'sent');
      console.log(`\nThe same ${CALLS} calls through Headgate:\n`);
      const through = await measure(upstream, `${serve.url}/practice/v1`, 'queued');
      compare(direct, through);
      return through.refused === 0 && through.completed === CALLS && through.peak === LIMIT;
    } finally {
      await serve.stop();
    }
  } finally {
    await upstream.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

try {
  const isWell = await main();
  console.log(
    isWell
      ? `\nThrough Headgate: no 429, all calls completed, at most ${LIMIT} in flight.`
      : `\nThe demo failed: through Headgate, a call failed or the peak was not ${LIMIT}. See the table.`,
  );
  process.exitCode = isWell ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
