import { setTimeout as delay } from 'node:timers/promises';
import { nameOf, type CanaryCallEnd } from '../call.ts';
import { outcome, skipped, type Check, type CheckOutcome } from '../check.ts';
import { countsOf, listed } from '../figures.ts';
import { CLOSED } from '../groups.ts';
import type { CanaryStage } from '../stage.ts';

/** Interval between calls that wait for a short time. */
const PROBE_EVERY_MS = 250;

/** Maximum wait of the queued calls, which is longer than a deploy. */
const MAX_WAIT_MS = 3_600_000;

/**
 * Interval between looks at the pool, and the number of consecutive looks above the limit that count as one over-grant.
 */
const LOOK = { everyMs: 250, inARow: 8 };

/** Slots that the streams share. */
const SLOTS = 2;

interface DeployTally {
  readonly probes: CanaryCallEnd[];
  /** Ends of calls that should have waited until the end of the check. */
  readonly waiters: CanaryCallEnd[];
  readonly streams: CanaryCallEnd[];
  mostStreaming: number;
  overGrants: number;
  hasRestarted: boolean;
}

const isTimedOut = ({ reason }: CanaryCallEnd): boolean => reason === 'queue_timeout';

function keepWaiting(stage: CanaryStage, tally: DeployTally): void {
  const { waiters } = stage.pace.deploy;
  for (let at = 0; at < waiters; at += 1) {
    const onEnd = (end: CanaryCallEnd): void => void tally.waiters.push(end);
    stage.send(stage.group('deploy'), { maxWaitMs: MAX_WAIT_MS, onEnd });
  }
}

async function keepProbing(
  stage: CanaryStage,
  tally: DeployTally,
  over: AbortSignal,
): Promise<void> {
  const open: Promise<unknown>[] = [];
  while (!over.aborted) {
    const { ended } = stage.send(stage.group('deploy'), { maxWaitMs: stage.pace.deploy.probeMs });
    open.push(ended.then((end) => tally.probes.push(end)));
    await delay(PROBE_EVERY_MS, undefined, { signal: stage.signal });
  }
  await Promise.all(open);
}

/** Keeps more streams open than there are slots, and counts how many run at once. */
async function keepStreaming(
  stage: CanaryStage,
  tally: DeployTally,
  over: AbortSignal,
): Promise<void> {
  const { upstream } = stage;
  if (upstream === null) return;
  let streaming = 0;
  const stream = async (): Promise<void> => {
    while (!over.aborted) {
      const call = stage.sendUpstream(upstream.stream());
      const status = await call.answered;
      if (status === 200) streaming += 1;
      tally.streams.push(await call.ended);
      if (status === 200) streaming -= 1;
    }
  };
  let above = 0;
  const watch = async (): Promise<void> => {
    while (!over.aborted) {
      tally.mostStreaming = Math.max(tally.mostStreaming, streaming);
      // The end of one stream may arrive here after the start of the next.
      above = streaming > SLOTS ? above + 1 : 0;
      if (above === LOOK.inARow) tally.overGrants += 1;
      await delay(LOOK.everyMs, undefined, { signal: stage.signal });
    }
  };
  await Promise.all([...Array.from({ length: stage.pace.deploy.streams }, stream), watch()]);
}

/** Detects a restart of the pool, after which it has counted fewer rejections than its callers have received. */
async function watchPool(stage: CanaryStage, tally: DeployTally, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    const reported = tally.probes.filter(isTimedOut).length;
    const status = await stage.status(stage.group('deploy')).catch(() => null);
    const counts = Object.values(status?.rejected_total ?? { none: reported });
    tally.hasRestarted ||= counts.reduce((sum, count) => sum + count, 0) < reported;
    await delay(LOOK.everyMs, undefined, { signal: stage.signal });
  }
}

function judge(tally: DeployTally): CheckOutcome {
  const probes = tally.probes.filter((end) => !isTimedOut(end));
  const cut = tally.streams.filter((end) => !end.isComplete || end.status !== 200);
  const wrong = countsOf([...probes, ...tally.waiters, ...cut].map(nameOf));
  const unavailable = [...probes, ...tally.waiters].filter(({ status }) => status === 503).length;
  const figures = {
    pool_began_anew: tally.hasRestarted,
    answers_503: unavailable,
    waiters_lost: tally.waiters.length,
    streams: tally.streams.length,
    streams_cut: cut.length,
    over_grants: tally.overGrants,
    most_streaming: tally.mostStreaming,
    probes: tally.probes.length,
    wrong,
  };
  const found = `pool restarted: ${tally.hasRestarted ? 'yes' : 'no'}; 503 responses: ${unavailable}; queued calls lost: ${tally.waiters.length}; streams cut: ${cut.length} of ${tally.streams.length}; over-grants: ${tally.overGrants}; unexpected responses: ${listed(wrong)}`;
  const isWell = Object.keys(wrong).length === 0 && tally.overGrants === 0;
  if (isWell && !tally.hasRestarted) {
    return { ...skipped(`${found}. Without a restart, the check proves nothing`), figures };
  }
  const meaning = isWell
    ? 'Callers do not notice a deploy.'
    : 'A deploy causes these errors. Let clients retry, or deploy when few calls are queued.';
  return outcome(isWell, found, meaning, figures);
}

export const deploy: Check = {
  id: 'deploy',
  title: 'A deploy under load',
  needs: ['deploy'],
  plan: ({ deploy: { waiters, maxMs } }, hasUpstream) => ({
    calls: waiters + Math.round(maxMs / PROBE_EVERY_MS),
    ms: maxMs,
    ...(hasUpstream && { paidCalls: Math.round(maxMs / 5_000) }),
  }),
  groups: () => ({ deploy: CLOSED }),
  async run(stage) {
    const tally: DeployTally = {
      probes: [],
      waiters: [],
      streams: [],
      mostStreaming: 0,
      overGrants: 0,
      hasRestarted: false,
    };
    if (stage.upstream !== null) await stage.setUpstreamSlots(SLOTS);
    keepWaiting(stage, tally);
    const over = new AbortController();
    const running = [keepProbing, keepStreaming, watchPool].map((keep) =>
      keep(stage, tally, over.signal),
    );
    stage.say('the load is running. Deploy now, and press Enter when the deploy is complete');
    const all = Promise.all(running);
    await Promise.race([stage.deployed(stage.pace.deploy.maxMs), all]);
    await Promise.race([
      delay(stage.pace.deploy.afterMs, undefined, { signal: stage.signal }),
      all,
    ]);
    // Calls that still wait are fine. They are closed with the group.
    over.abort();
    await all;
    return judge(tally);
  },
};
