import type { CutReason } from '../core/words/cut.ts';
import type { HoldLimits } from '../upstream/transfer/hold-limits.ts';
import { rejected, type Rejected } from './result.ts';

/** The rejection of a call that its upstream refuses for where it comes from, with nowhere else to go. */
export function closed(upstreamId: string): Rejected {
  const message = `The upstream ${upstreamId} refuses calls from where this one was sent from, and no other served it.`;
  return rejected({ reason: 'upstream_unreachable', message });
}

/** The rejection of a call whose caller stopped sending its body, or sends it too slowly. */
export function uploadTooSlow({ stalledMs, uploadMinBytesPerS }: HoldLimits): Rejected {
  const message =
    `The body of the call did not arrive in time: it fell ${stalledMs ?? 0} ms behind a rate of ${uploadMinBytesPerS} bytes/s. ` +
    'Retry over a faster connection, or ask the operator to change holds.stalled_ms or ' +
    'holds.upload_min_bytes_per_s of the group.';
  return rejected({ reason: 'request_timeout', message });
}

/** The rejection of a call that its upstream gave no answer to; `cutBy` null: the connection failed. */
export function unreachable(upstreamId: string, cutBy: CutReason | null): Rejected {
  const why: Record<CutReason, string> = {
    left: 'the caller has gone',
    body: 'what was left of the body may not go out',
    revoked: 'the call was ended by the operator',
    idle: 'it sent nothing in time',
    slow: 'its first byte did not come in time',
    stalled: 'the caller took nothing of it in time',
    request_timeout: 'the caller sent its body too slowly',
    max_hold: 'the call took longer than its group allows',
    slow_reader: 'one side did not read what the other one sent',
    overfull: 'more waited behind it than there is room for',
    draining: 'its group is being drained',
    other_model: 'it names another model than it was counted by',
    message_unreadable: 'one of its messages could not be read',
    message_refused: 'one of its messages was refused',
    key_invalid: 'its key opens nothing any more',
    key_forbidden: 'its key may no longer use its group or upstream',
    group_changed: 'it no longer belongs to a group whose slot it holds',
    upstream_closed: 'the upstream was disabled or removed',
    restart: 'Headgate ends',
  };
  const because = cutBy === null ? 'the connection failed' : why[cutBy];
  const message = `The upstream ${upstreamId} gave no answer: ${because}.`;
  return rejected({ reason: 'upstream_unreachable', message });
}
