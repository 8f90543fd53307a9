import type { CutReason } from '../../core/words/cut.ts';

/** The end of a WebSocket, as it is said to one of its sides. Without a code none was given. */
export interface SocketClose {
  readonly code?: number;
  /** At most 123 bytes. */
  readonly reason?: string;
}

/** A close frame came without a code (RFC 6455, 7.1.5), or none came at all. */
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

/** How each end of ours is said, by https://www.iana.org/assignments/websocket: who may come back at once is told so. */
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

/** Closes both sides of a WebSocket with the reason. `why` is ASCII. */
export function closeFor(reason: CutReason, why = ''): Required<SocketClose> {
  const text = why === '' ? `headgate: ${reason}` : `headgate: ${reason}: ${why}`;
  return { code: CODES[reason], reason: text.slice(0, REASON_BYTES_MAX) };
}

/** Passes on to one side how the other one has ended it. */
export function passedOn(code: number, reason: string, from: 'caller' | 'upstream'): SocketClose {
  if (code === NO_CODE) return {};
  if (code !== NO_FRAME) return { code, reason };
  return from === 'caller'
    ? { code: GOING_AWAY, reason: 'headgate: the client has gone' }
    : { code: INTERNAL_ERROR, reason: 'headgate: the connection to the upstream broke' };
}

/** Whether the upstream ended a WebSocket because it could not go on. */
export function isFailure(code: number): boolean {
  return code === NO_FRAME || (code >= INTERNAL_ERROR && code <= 1014);
}
