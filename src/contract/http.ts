/**
 * What requests and responses are made of: methods, the API shapes of their bodies, the facts that the forwarder of
 * `serve` adds, and the headers that Headgate sets. Free of schemas, because the dashboard loads it at its start.
 */

/** Methods of calls that may take a slot. HEAD and OPTIONS never do. */
export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** All methods that are served. Any other method is rejected with 405 on every route. */
export const SERVED_METHODS: readonly string[] = [...METHODS, 'HEAD', 'OPTIONS'];

export const READING_METHODS: readonly string[] = ['GET', 'HEAD'];

/** Methods of calls with a body, such as generation. Calls of other methods mostly read results. */
export const METHODS_WITH_BODY: readonly string[] = ['POST', 'PUT', 'PATCH'];

/** The API shapes of upstreams. Bodies of `opaque` upstreams are not read. */
export const DIALECTS = [
  'openai',
  'anthropic',
  'gemini',
  'azure',
  'bedrock',
  'ollama',
  'opaque',
] as const;

export type Dialect = (typeof DIALECTS)[number];

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

interface AnswerHeaderShape {
  /** Headgate alone may send this header. It is removed from upstream responses. */
  readonly isOurs: boolean;
  /** Scripts of a configured origin may read it. */
  readonly isExposed: boolean;
}

/**
 * Every header that Headgate sets on the response to a call. It defines which headers are removed from upstream
 * responses, which ones CORS exposes, and which ones may be set. docs/http.md has one row for each. The only other
 * headers are `content-type`, and those of CORS itself, which `cors_origins` controls.
 *
 * Each row says what the header means, when it is sent, and which part of `src/call` sets it.
 */
export const ANSWER_HEADERS = {
  /** Groups of the call, narrow ones first. On every call and lease that was admitted: `relay.ts`, `post-lease.ts`. */
  'headgate-groups': { isOurs: true, isExposed: true },
  /** Member that ran the call. If its group has members: `relay.ts`, `post-lease.ts`. */
  'headgate-member': { isOurs: true, isExposed: true },
  /** Ids of the leases of the call. Unless it passed without a slot: `relay.ts`, `post-lease.ts`. */
  'headgate-lease': { isOurs: true, isExposed: true },
  /** On the release of a lease: whether the `reported` or the `reserved` usage is charged. Set in `lease-routes.ts`. */
  'headgate-usage': { isOurs: true, isExposed: true },
  /** Milliseconds from the arrival to the last attempt. On admitted calls and leases: `relay.ts`, `post-lease.ts`. */
  'headgate-wait-ms': { isOurs: true, isExposed: true },
  /**
   * Wait reason in the group where the call waited longest: `slots; group=openai`. Absent if it did not wait. Set in
   * `acquire/waited.ts`.
   */
  'headgate-waited-for': { isOurs: true, isExposed: true },
  /** Attempts at upstreams. On admitted calls, and on rejections after one: `relay.ts`, `wire-error.ts`. */
  'headgate-tries': { isOurs: true, isExposed: true },
  /**
   * Request headers and parameters (`?name`) that were not forwarded because they choose an account. Absent if there
   * are none. Set in `target.ts`.
   */
  'headgate-dropped': { isOurs: true, isExposed: false },
  /**
   * Upstreams whose models are missing from a list, at least in part, with the reason: `attic;reason=timeout`. Absent
   * if there are none. Set in `models/models-answer.ts`.
   */
  'headgate-missing': { isOurs: true, isExposed: true },
  /** Reason of a rejection. Marks a response as Headgate's own. On all of them: `wire-error.ts`, `socket-error.ts`. */
  'headgate-reason': { isOurs: true, isExposed: true },
  /** Seconds until a retry may succeed, on temporary rejections. */
  'retry-after': { isOurs: false, isExposed: true },
  /** The same in milliseconds. */
  'retry-after-ms': { isOurs: false, isExposed: true },
  /** `false` if no retry helps. */
  'x-should-retry': { isOurs: false, isExposed: true },
  /** Room in the request and token limits of the caller's key or group, if the upstream reports none. */
  'x-ratelimit-limit-requests': { isOurs: false, isExposed: true },
  'x-ratelimit-remaining-requests': { isOurs: false, isExposed: true },
  'x-ratelimit-reset-requests': { isOurs: false, isExposed: true },
  'x-ratelimit-limit-tokens': { isOurs: false, isExposed: true },
  'x-ratelimit-remaining-tokens': { isOurs: false, isExposed: true },
  'x-ratelimit-reset-tokens': { isOurs: false, isExposed: true },
  /** Type of Headgate's own error in Bedrock's dialect. Bedrock's SDKs choose their exception by it. */
  'x-amzn-errortype': { isOurs: false, isExposed: false },
  /** `sandbox` if a browser opens an upstream's response as a page. */
  'content-security-policy': { isOurs: false, isExposed: false },
} as const satisfies Record<string, AnswerHeaderShape>;

export type AnswerHeaders = Readonly<Partial<Record<keyof typeof ANSWER_HEADERS, string>>>;

const ROWS: readonly (readonly [string, AnswerHeaderShape])[] = Object.entries(ANSWER_HEADERS);

/** Names of the headers that an upstream may not send. They are removed from its responses. */
export const FORGEABLE_HEADERS: readonly string[] = ROWS.filter(([, { isOurs }]) => isOurs).map(
  ([name]) => name,
);

/** Names of the headers that callers may read across origins. */
export const REPORTED_HEADERS: readonly string[] = ROWS.filter(
  ([, { isExposed }]) => isExposed,
).map(([name]) => name);

export function putAnswerHeaders(headers: Headers, ours: AnswerHeaders): void {
  for (const [name, value] of Object.entries(ours)) headers.set(name, value);
}
