import type { CutReason } from '../../core/words/cut.ts';

/** The close of a WebSocket, as sent to one side. The code is absent if none was given. */
export interface SocketClose {
  readonly code?: number;
  /** At most 123 bytes. */
  readonly reason?: string;
}

/** The close frame had no code (RFC 6455, 7.1.5). 1006 means that there was no close frame. */
const NO_CODE = 1005;
export const NO_FRAME = 1006;

const REASON_BYTES_MAX = 123;

const GOING_AWAY = 1001;
const TOO_BIG = 1009;
const INTERNAL_ERROR = 1011;
const INVALID_PAYLOAD = 1007;
const POLICY_VIOLATION = 1008;
const SERVICE_RESTART = 1012;
const TRY_AGAIN_LATER = 1013;

/**
 * The close code of each reason, from https://www.iana.org/assignments/websocket. Codes differ by whether the client
 * may reconnect immediately.
 */
const CODES: Readonly<Record<CutReason, number>> = {
  revoked: POLICY_VIOLATION,
  max_hold: POLICY_VIOLATION,
  idle: POLICY_VIOLATION,
  key_invalid: POLICY_VIOLATION,
  key_forbidden: POLICY_VIOLATION,
  upstream_closed: POLICY_VIOLATION,
  group_changed: SERVICE_RESTART,
  other_model: POLICY_VIOLATION,
  message_refused: POLICY_VIOLATION,
  message_unreadable: INVALID_PAYLOAD,
  overfull: TOO_BIG,
  restart: SERVICE_RESTART,
  draining: TRY_AGAIN_LATER,
  slow_reader: TRY_AGAIN_LATER,
  left: GOING_AWAY,
  body: INTERNAL_ERROR,
  slow: TRY_AGAIN_LATER,
  stalled: TRY_AGAIN_LATER,
  request_timeout: TRY_AGAIN_LATER,
};

/** The close for a reason, for both sides of a WebSocket. `why` must be ASCII. */
export function closeFor(reason: CutReason, why = ''): Required<SocketClose> {
  const text = why === '' ? `headgate: ${reason}` : `headgate: ${reason}: ${why}`;
  return { code: CODES[reason], reason: text.slice(0, REASON_BYTES_MAX) };
}

/** The close that one side receives after the other one has ended the connection. */
export function passedOn(code: number, reason: string, from: 'caller' | 'upstream'): SocketClose {
  if (code === NO_CODE) return {};
  if (code !== NO_FRAME) return { code, reason };
  return from === 'caller'
    ? { code: GOING_AWAY, reason: 'headgate: the client has gone' }
    : { code: INTERNAL_ERROR, reason: 'headgate: the connection to the upstream broke' };
}

/** Whether the upstream ended a WebSocket because of a failure. */
export function isFailure(code: number): boolean {
  return code === NO_FRAME || (code >= INTERNAL_ERROR && code <= 1014);
}
