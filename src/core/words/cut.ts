export type CutReason =
  /** The caller disconnected. */
  | 'left'
  /** The remaining body of the request may not be sent. */
  | 'body'
  /** An operator revoked the lease. */
  | 'revoked'
  /** The upstream was silent for too long. */
  | 'idle'
  /** The first content of the answer did not arrive within the timeout. */
  | 'slow'
  /** The caller read nothing for too long although data was available. */
  | 'stalled'
  /** The caller sent its body too slowly, or stopped. */
  | 'request_timeout'
  /** The call held its slot for too long. */
  | 'max_hold'
  /** One side of a WebSocket did not read what the other one sent. */
  | 'slow_reader'
  /** Too many messages are queued behind a turn. */
  | 'overfull'
  /** The group of a session is being drained. */
  | 'draining'
  /** The key of a WebSocket is no longer valid. */
  | 'key_invalid'
  /** The key of a WebSocket may no longer use its group or its upstream. */
  | 'key_forbidden'
  /** The session no longer belongs to a group whose slot it holds. */
  | 'group_changed'
  /** The upstream was disabled or removed, or no longer serves WebSockets. */
  | 'upstream_closed'
  /** A message of a session names a model other than the session's. */
  | 'other_model'
  /** The model in a message of a session could not be read, and groups or keys depend on it. */
  | 'message_unreadable'
  /** The upstream accepts no message of this kind at this point of the session. */
  | 'message_refused'
  /** The process is shutting down. */
  | 'restart';
