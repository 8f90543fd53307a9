import { nameOf, type CanaryCallEnd } from '../call.ts';
import { outcome, type Check } from '../check.ts';
import { duration } from '../figures.ts';
import { CLOSED } from '../groups.ts';
import type { CanaryStage } from '../stage.ts';

/** How much later than asked for an answer may come before the caller gives up. */
const PATIENCE_MS = 60_000;

/** Comments begin early here, so that short waits have some too. */
const KEEPALIVE = { after_ms: 1_000, every_ms: 5_000 };

/** A wait that was to end with an answer of Headgate's. */
interface SilentWait {
  readonly waitMs: number;
  readonly isSilent: boolean;
  readonly end: CanaryCallEnd;
}

/** Waits in silence, or as a stream that gets comments. */
async function wait(stage: CanaryStage, waitMs: number, isSilent: boolean): Promise<SilentWait> {
  const patienceMs = waitMs + PATIENCE_MS;
  const extra = { maxWaitMs: waitMs, stream: !isSilent, patienceMs };
  return { waitMs, isSilent, end: await stage.send(stage.group('silence'), extra).ended };
}

/** Tells whether the wait was as long as asked for, and had the answer that ends it. */
function isWell({ waitMs, isSilent, end }: SilentWait): boolean {
  if (!end.isComplete || end.ms < waitMs * 0.9) return false;
  if (end.reason !== null) return end.reason === 'queue_timeout';
  return !isSilent && end.text.startsWith(':') && end.text.includes('"error"');
}

const reported = (each: SilentWait): string => {
  const kind = each.isSilent ? 'silent' : 'with comments';
  const what = isWell(each) ? 'held' : `${nameOf(each.end)} after ${duration(each.end.ms)}`;
  return `${duration(each.waitMs)} ${kind}: ${what}`;
};

/** Lets calls wait for minutes, and looks whether anything between cuts them. */
export const silence: Check = {
  id: 'silence',
  title: 'Calls that wait for minutes, silent or with comments',
  needs: [],
  plan: ({ silence: { waitsMs } }) => ({ calls: waitsMs.length * 2, ms: Math.max(...waitsMs) }),
  groups: () => ({ silence: { ...CLOSED, queue: { ...CLOSED.queue, keepalive: KEEPALIVE } } }),
  async run(stage) {
    const { waitsMs } = stage.pace.silence;
    stage.say(`calls that wait for ${waitsMs.map(duration).join(', ')}`);
    const kinds = waitsMs.flatMap((waitMs) => [
      wait(stage, waitMs, true),
      wait(stage, waitMs, false),
    ]);
    const waits = await Promise.all(kinds);
    const well = waits.every(isWell);
    const figures = {
      waits: waits.map((each) => ({
        wait_ms: each.waitMs,
        silent: each.isSilent,
        held: isWell(each),
        answer: nameOf(each.end),
        after_ms: Math.round(each.end.ms),
      })),
    };
    const meaning = well
      ? 'Nothing between you and Headgate cuts a call that waits that long.'
      : 'Something between cuts calls that wait: keep queue.timeout_ms below that, or have streams send comments.';
    return outcome(well, waits.map(reported).join('; '), meaning, figures);
  },
};
