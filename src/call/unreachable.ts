import type { CutReason } from '../core/words/outcome.ts';
import type { HoldLimits } from '../upstream/transfer/upload-pace.ts';
import { rejected, type Rejected } from './result.ts';

/**
 * The rejection of a call whose upstream refuses the network address of this deployment, if no other upstream is left.
 */
export function closed(upstreamId: string): Rejected {
  const message = `Upstream \`${upstreamId}\` refuses calls from the network address of this deployment, and no other upstream served this one. Ask the operator for an upstream that accepts them.`;
  return rejected({ reason: 'upstream_unreachable', message });
}

/** The rejection of a call whose caller stopped sending its body, or sends it too slowly. */
export function uploadTooSlow({ stalledMs, uploadMinBytesPerS }: HoldLimits): Rejected {
  const message =
    `The request body did not arrive in time: it fell ${stalledMs ?? 0} ms behind a rate of ${uploadMinBytesPerS} bytes/s. ` +
    'Retry over a faster connection, or ask the operator to change `holds.stalled_ms` or ' +
    '`holds.upload_min_bytes_per_s` of the group.';
  return rejected({ reason: 'request_timeout', message });
}

/** The rejection of a call that its upstream did not answer. `cutBy` is null if the connection failed. */
export function unreachable(upstreamId: string, cutBy: CutReason | null): Rejected {
  const why: Record<CutReason, string> = {
    left: 'the caller disconnected',
    body: 'the remaining body may not be sent',
    revoked: 'the operator ended the call',
    idle: 'it sent nothing in time',
    slow: 'its first byte did not arrive in time',
    stalled: 'the caller did not read the response in time',
    request_timeout: 'the caller sent its body too slowly',
    max_hold: 'the call took longer than its group allows',
    slow_reader: 'one side did not read what the other side sent',
    overfull: 'too much was queued behind it',
    draining: 'its group is being drained',
    other_model: 'it names a different model than the one it was counted under',
    message_unreadable: 'one of its messages could not be read',
    message_refused: 'one of its messages was rejected',
    key_invalid: 'its key is no longer valid',
    key_forbidden: 'its key may no longer use its group or upstream',
    group_changed: 'it no longer belongs to a group whose slot it holds',
    upstream_closed: 'the upstream was disabled or removed',
    restart: 'Headgate is shutting down',
  };
  const because = cutBy === null ? 'the connection failed' : why[cutBy];
  const message = `Upstream \`${upstreamId}\` returned no response: ${because}.`;
  return rejected({ reason: 'upstream_unreachable', message });
}
