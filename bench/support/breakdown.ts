import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ROOT, WRANGLER } from '../../scripts/serve/build.ts';
import { percent, printTable } from './report.ts';
import { FULL_TIMING, QUICK_TIMING, ratio, runRounds, typical, type Scenario } from './rounds.ts';
import { startBare, startHeadgate, type Subject } from './subjects.ts';
import { startUpstream } from './upstream.ts';

const PARTS_WORKER = fileURLToPath(new URL('parts-worker.js', import.meta.url));

const SCENARIO: Scenario = {
  title: 'Small JSON calls, 32 callers',
  callers: 32,
  streamChunks: null,
};

/** From nothing to everything; each has what those before it have, and the last one need not ask. `parts-worker.js` knows the words. */
const PARTS = [
  { part: 'worker', name: '+ keys, routing, headers, timers' },
  { part: 'acquire', name: '+ asking an object for a lease, and its disposal' },
  { part: 'release', name: '+ the release' },
  { part: 'core', name: '+ deciding, batches, no rows' },
  { part: 'rows', name: '+ rows' },
  { part: 'all', name: 'asking seldom, on lent slots: Headgate' },
] as const;

function buildParts(dir: string): string {
  const args = [WRANGLER, 'deploy', PARTS_WORKER, '--dry-run', '--outdir', dir];
  const env = { ...process.env, WRANGLER_SEND_METRICS: 'false' };
  const built = spawnSync(process.execPath, args, { cwd: ROOT, env, encoding: 'utf8' });
  if (built.status !== 0) throw new Error(`The build failed:\n${built.stdout}${built.stderr}`);
  return join(dir, 'parts-worker.js');
}

/** Measures Headgate with more and more of its parts, and prints what each of them adds. */
export async function runBreakdown(dir: string, isQuick: boolean): Promise<void> {
  const upstream = await startUpstream();
  const upstreamUrl = upstream.url;
  const timing = isQuick ? QUICK_TIMING : FULL_TIMING;
  const module = buildParts(join(dir, 'parts'));
  const subjects: Subject[] = [];
  try {
    subjects.push(await startBare('identity pipe', 'pipe', dir, upstreamUrl));
    for (const { part, name } of PARTS) {
      const env = { UPSTREAM_PART: part };
      const options = { name, dir, upstreamUrl, group: 'configured', env, module } as const;
      subjects.push(await startHeadgate(options));
    }
    const samples = await runRounds(subjects, SCENARIO, timing);
    const [pipe] = subjects;
    if (pipe === undefined) return;
    let before = 0;
    const rows = subjects.map((subject) => {
      const cpuUs = typical(samples, subject, 'cpuUs');
      const added = cpuUs - before;
      before = cpuUs;
      return [
        subject.name,
        typical(samples, subject, 'callsPerS').toFixed(0),
        cpuUs.toFixed(0),
        added.toFixed(0),
        percent(ratio(samples, subject, pipe, 'callsPerS')),
      ];
    });
    console.log(`\n${SCENARIO.title}: what each part adds\n`);
    printTable([['', 'calls/s', 'CPU µs/call', 'added', 'of the pipe'], ...rows]);
  } finally {
    await Promise.all(subjects.map((subject) => subject.stop()));
    await upstream.close();
  }
}
