import { setTimeout as delay } from 'node:timers/promises';
import { outcome, type Check } from '../check.ts';
import { duration } from '../figures.ts';
import type { CanaryStage } from '../stage.ts';

/** The feed sends beats more often than this, so a longer silence means that it is dead. */
const SILENT_MS = 10_000;

const REOPEN_AFTER_MS = 500;

interface FeedWatch {
  opened: number;
  snapshots: number;
  beats: number;
  longestSilenceMs: number;
  readonly problems: string[];
}

/** Reads a feed until it ends, is silent for too long, or the time is up. */
async function watch(stage: CanaryStage, watched: FeedWatch, until: number): Promise<void> {
  const { url, token } = stage.target;
  const silence = new AbortController();
  stage.sent.admin_requests += 1;
  watched.opened += 1;
  let lastAt = performance.now();
  const timer = setInterval(() => {
    watched.longestSilenceMs = Math.max(watched.longestSilenceMs, performance.now() - lastAt);
    if (performance.now() - lastAt > SILENT_MS) silence.abort(new Error('silent'));
    if (performance.now() > until) silence.abort(null);
  }, 100);
  try {
    const response = await fetch(`${url}/admin/api/events`, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.any([silence.signal, stage.signal]),
    });
    if (!response.ok || response.body === null) throw new Error(`returned ${response.status}`);
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      lastAt = performance.now();
      watched.snapshots += chunk.split('event: snapshot').length - 1;
      watched.beats += chunk.split('event: beat').length - 1;
    }
  } catch (error) {
    stage.signal.throwIfAborted();
    if (performance.now() < until) {
      watched.problems.push(error instanceof Error ? error.message : String(error));
    }
  } finally {
    clearInterval(timer);
  }
}

/** Keeps the live feed of the dashboard open and reopens it when it ends. */
export const feed: Check = {
  id: 'feed',
  title: 'Live feed of the dashboard',
  needs: [],
  plan: ({ feed: { openMs } }) => ({ calls: 0, ms: openMs }),
  groups: () => ({}),
  async run(stage) {
    const { openMs } = stage.pace.feed;
    stage.say(`open for ${duration(openMs)}`);
    const watched: FeedWatch = {
      opened: 0,
      snapshots: 0,
      beats: 0,
      longestSilenceMs: 0,
      problems: [],
    };
    const until = performance.now() + openMs;
    while (performance.now() < until) {
      await watch(stage, watched, until);
      await delay(REOPEN_AFTER_MS, undefined, { signal: stage.signal });
    }
    const { opened, snapshots, beats, problems } = watched;
    const silentMs = Math.round(watched.longestSilenceMs);
    const isWell = problems.length === 0 && snapshots >= opened && silentMs < SILENT_MS;
    const wrong = problems.length === 0 ? '' : `; broke: ${problems.length} (${problems[0]})`;
    const found = `open for ${duration(openMs)}; opened: ${opened}; snapshots: ${snapshots}; beats: ${beats}; longest silence: ${duration(silentMs)}${wrong}`;
    const meaning = isWell
      ? 'An open dashboard stays up to date.'
      : 'Dashboards miss events. Look for exceptions of the feed in the logs.';
    const figures = { opened, snapshots, beats, longest_silence_ms: silentMs, problems };
    return outcome(isWell, found, meaning, figures);
  },
};
