/** Where the forwarder of `serve` says that callers have left: `request.cf` of such a request is a `Departed`. */
export const DEPARTED_PATH = '/!departed';

/** Facts about a request that the forwarder tells the Worker as `request.cf`: no header of a caller can set that. */
export interface Forwarded {
  /** The client's address. */
  readonly clientIp?: string | undefined;
  /** Which connection of the forwarder it came in on. */
  readonly connection: number;
}

/** Connections whose clients have left, since this was last told. */
export interface Departed {
  readonly departed: readonly number[];
}

/** Where `serve` says that it ends the process: `request.cf` of such a request is a `Stopping`. */
export const STOPPING_PATH = '/!stopping';

/** The end of the process is near: WebSockets are to end, and what waits for a later write is to be written. */
export interface Stopping {
  readonly isStopping: true;
  /** Whether calls may still come to their end: then WebSockets are to end once nothing is under way on them. */
  readonly mayFinish?: true;
}
