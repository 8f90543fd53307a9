/** Why a call was cut short. */
export type CutReason =
  /** The caller has gone. */
  | 'left'
  /** The rest of the caller's body may not go out. */
  | 'body'
  /** An operator took the lease away. */
  | 'revoked'
  /** The upstream was silent for too long. */
  | 'idle'
  /** The first content of the answer did not arrive within the timeout. */
  | 'slow'
  /** The caller took nothing for too long, though there was something for it. */
  | 'stalled'
  /** The caller sent its body too slowly, or stopped. */
  | 'request_timeout'
  /** The call held its slot for too long. */
  | 'max_hold'
  /** One side of a WebSocket did not read what the other one sent. */
  | 'slow_reader'
  /** More waits behind a turn than there is room for. */
  | 'overfull'
  /** The group of a session is being drained. */
  | 'draining'
  /** The key of a WebSocket opens nothing any more. */
  | 'key_invalid'
  /** The key of a WebSocket may no longer use its group or its upstream. */
  | 'key_forbidden'
  /** The session no longer belongs to a group whose slot it holds. */
  | 'group_changed'
  /** The upstream was disabled or removed, or no longer serves WebSockets there. */
  | 'upstream_closed'
  /** A message of a session names another model than the session counts as. */
  | 'other_model'
  /** The model in a message of a session could not be read, and groups or keys depend on it. */
  | 'message_unreadable'
  /** The upstream accepts no message of this kind at this point of the session. */
  | 'message_refused'
  /** The process ends. */
  | 'restart';
