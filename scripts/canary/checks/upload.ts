import { nameOf, type CanaryCallEnd } from '../call.ts';
import { outcome, type Check } from '../check.ts';
import { duration } from '../figures.ts';
import { CLOSED } from '../groups.ts';

/** Margin after the requested wait before the client gives up. */
const PATIENCE_MS = 60_000;

interface UploadResult {
  readonly waitMs: number;
  readonly end: CanaryCallEnd;
}

/** A rejection with the expected reason passes. A broken connection fails. */
const isWell = ({ end }: UploadResult): boolean =>
  end.isComplete && ['queue_timeout', 'too_many_bytes_waiting'].includes(end.reason ?? '');

/** Queues calls with large unread bodies and detects intermediaries that cut them. */
export const upload: Check = {
  id: 'upload',
  title: 'Long waits with large request bodies',
  needs: [],
  plan: ({ upload: { waitsMs } }) => ({ calls: waitsMs.length, ms: Math.max(...waitsMs) }),
  groups: () => ({ upload: CLOSED }),
  async run(stage) {
    const { bytes, waitsMs } = stage.pace.upload;
    const size = `${(bytes / 1_048_576).toFixed(1)} MiB`;
    stage.say(`bodies of ${size} that wait for ${waitsMs.map(duration).join(', ')}`);
    const send = async (waitMs: number): Promise<UploadResult> => {
      const extra = { maxWaitMs: waitMs, bodyBytes: bytes, patienceMs: waitMs + PATIENCE_MS };
      return { waitMs, end: await stage.send(stage.group('upload'), extra).ended };
    };
    const uploads = await Promise.all(waitsMs.map(send));
    const reported = uploads.map(
      ({ waitMs, end }) => `${duration(waitMs)}: ${nameOf(end)} after ${duration(end.ms)}`,
    );
    const figures = {
      bytes,
      uploads: uploads.map(({ waitMs, end }) => ({
        wait_ms: waitMs,
        answer: nameOf(end),
        after_ms: Math.round(end.ms),
        bytes_taken: end.bytesSent,
      })),
    };
    const well = uploads.every(isWell);
    const meaning = well
      ? 'Calls with a large body can wait this long.'
      : 'An intermediary cuts stalled uploads. Let such calls wait less (headgate-max-wait).';
    return outcome(well, `${size}, ${reported.join('; ')}`, meaning, figures);
  },
};
