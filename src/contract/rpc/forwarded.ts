/** Path at which the forwarder of `serve` reports departed callers. `request.cf` of such a request is a `Departed`. */
export const DEPARTED_PATH = '/!departed';

/** Facts about a request that the forwarder sends as `request.cf`, because headers of callers cannot set it. */
export interface Forwarded {
  readonly clientIp?: string | undefined;
  /** Number of the forwarder's incoming connection. */
  readonly connection: number;
}

/** Connections whose clients have disconnected since the last report. */
export interface Departed {
  readonly departed: readonly number[];
}

/** Path at which `serve` announces the end of the process. `request.cf` of such a request is a `Stopping`. */
export const STOPPING_PATH = '/!stopping';

/** The process is about to end: WebSockets should close, and pending writes should be flushed. */
export interface Stopping {
  readonly isStopping: true;
  /** Whether running calls may finish. WebSockets then close once nothing is in flight on them. */
  readonly mayFinish?: true;
}
