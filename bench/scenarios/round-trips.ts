import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureBuilt } from '../../scripts/serve/build.ts';
import { buildAround } from '../../test/support/build-worker.ts';
import { printTable, type ReportVerdict } from '../support/report.ts';
import { median, quantile } from '../support/rounds.ts';
import { startHeadgate, type Subject } from '../support/subjects.ts';
import { startUpstream } from '../support/upstream.ts';
import type { BenchScenario } from './scenario.ts';

/** Asks to a pool's object that a call waits for, where it is warm and nobody waits. */
const AIM = 0;

const CALLS = { full: 2_000, quick: 300 };

/** Calls until a pool counts as busy. */
const WARM_UP_CALLS = 200;

const WRAPPER = {
  path: fileURLToPath(new URL('../support/path-worker.js', import.meta.url)),
  makes: 'counting',
  classes: ['DirectoryObject', 'FeedObject'],
};

/** Calls one after the other: the Worker counts for one call at a time. Answers with the asks of each. */
async function asksOf({ port, request }: Subject, calls: number): Promise<number[]> {
  const head = request(null).toString('latin1');
  const [line = '', ...lines] = head.slice(0, head.indexOf('\r\n\r\n')).split('\r\n');
  const own = lines.filter((text) => !/^(host|content-length):/i.test(text));
  const headers = own.map((text): [string, string] => [
    text.slice(0, text.indexOf(':')),
    text.slice(text.indexOf(':') + 2),
  ]);
  const url = `http://127.0.0.1:${port}${line.split(' ')[1]}`;
  const body = head.slice(head.indexOf('\r\n\r\n') + 4);
  const asks: number[] = [];
  for (let left = calls; left > 0; left -= 1) {
    const answer = await fetch(url, { method: 'POST', headers, body });
    await answer.arrayBuffer();
    const way = JSON.parse(answer.headers.get('bench-way') ?? '') as { acquires: number };
    asks.push(way.acquires);
  }
  return asks;
}

export const roundTrips: BenchScenario = {
  name: 'trips',
  async run({ dir, isQuick, keep, roundIsOver }) {
    const upstream = await startUpstream();
    keep({ stop: () => upstream.close() });
    const module = await buildAround(await ensureBuilt(), WRAPPER, join(dir, 'around'));
    const shared = { dir, upstreamUrl: upstream.url, module };
    const verdicts: ReportVerdict[] = [];
    const rows: string[][] = [];
    for (const group of ['configured', 'automatic'] as const) {
      const name = `Headgate, ${group} group`;
      const subject = keep(await startHeadgate({ ...shared, name, group }));
      await asksOf(subject, WARM_UP_CALLS);
      const asks = await asksOf(subject, isQuick ? CALLS.quick : CALLS.full);
      roundIsOver();
      const mean = asks.reduce((sum, count) => sum + count, 0) / asks.length;
      rows.push([
        name,
        mean.toFixed(3),
        ...[0.5, 0.99].map((part) => String(quantile(asks, part))),
      ]);
      verdicts.push({
        aim: `${name}: a warm call that nobody is before asks its pool's object ${AIM} times`,
        measured: String(median(asks)),
        holds: median(asks) === AIM,
      });
    }
    console.log("\nAsks to the pool's object before the upstream is called\n");
    printTable([['', 'mean', 'median', 'p99'], ...rows]);
    return verdicts;
  },
};
