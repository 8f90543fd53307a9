import { nameOf, type CanaryCallEnd } from '../call.ts';
import { outcome, type Check } from '../check.ts';
import { duration } from '../figures.ts';
import { CLOSED } from '../groups.ts';
import type { CanaryStage } from '../stage.ts';

/** Margin after the requested wait before the client gives up. */
const PATIENCE_MS = 60_000;

/** Comments begin early, so that short waits also receive some. */
const KEEPALIVE = { after_ms: 1_000, every_ms: 5_000 };

/** A wait that should end with a response of Headgate. */
interface SilentWait {
  readonly waitMs: number;
  readonly isSilent: boolean;
  readonly end: CanaryCallEnd;
}

/** Waits without receiving data, or as a stream that receives comments. */
async function wait(stage: CanaryStage, waitMs: number, isSilent: boolean): Promise<SilentWait> {
  const patienceMs = waitMs + PATIENCE_MS;
  const extra = { maxWaitMs: waitMs, stream: !isSilent, patienceMs };
  return { waitMs, isSilent, end: await stage.send(stage.group('silence'), extra).ended };
}

/** Whether the wait was as long as requested and ended with the expected response. */
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

/** Queues calls for minutes and detects intermediaries that cut them. */
export const silence: Check = {
  id: 'silence',
  title: 'Long waits, without data or with comments',
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
      ? 'No intermediary between you and Headgate cuts calls that wait this long.'
      : 'An intermediary cuts queued calls. Set queue.timeout_ms below this time, or let streams send comments.';
    return outcome(well, waits.map(reported).join('; '), meaning, figures);
  },
};
