/** Properties of a header that Headgate puts on answers. */
interface AnswerHeaderShape {
  /** Whether only Headgate says it: an upstream that sends it speaks as Headgate, and is not heard. */
  readonly isOurs: boolean;
  /** Whether scripts of a configured origin may read it. */
  readonly isExposed: boolean;
}

/**
 * Every header by which Headgate says something on the answer to a call. What is taken off an upstream's answers,
 * what CORS exposes and what may be put on derive from it, and docs/http.md has these rows. Besides there are
 * only `content-type`, and those of CORS itself, which `cors_origins` decides.
 */
export const ANSWER_HEADERS = {
  /** The groups that the call ran in, narrow first. */
  'headgate-groups': { isOurs: true, isExposed: true },
  /** The member of its group that it ran at. */
  'headgate-member': { isOurs: true, isExposed: true },
  /** The leases that it held. */
  'headgate-lease': { isOurs: true, isExposed: true },
  /** On a lease's release: which usage is charged, the `reported` or the `reserved` one. */
  'headgate-usage': { isOurs: true, isExposed: true },
  /** Milliseconds from its arrival to its last try. */
  'headgate-wait-ms': { isOurs: true, isExposed: true },
  /** Why it was not granted at once, in the group where it waited longest: `slots; group=openai`. Absent: it did not wait. */
  'headgate-waited-for': { isOurs: true, isExposed: true },
  /** How often upstreams were asked. */
  'headgate-tries': { isOurs: true, isExposed: true },
  /** Names of the request's headers and parameters (`?name`) that were not forwarded because they choose an account. */
  'headgate-dropped': { isOurs: true, isExposed: false },
  /** Upstreams whose models are missing in a list, wholly or in part, each with the reason: `attic;reason=timeout`. */
  'headgate-missing': { isOurs: true, isExposed: true },
  /** Why Headgate refused; marks an answer as ours. */
  'headgate-reason': { isOurs: true, isExposed: true },
  /** Seconds until another try may succeed, on temporary refusals. */
  'retry-after': { isOurs: false, isExposed: true },
  /** The same in milliseconds. */
  'retry-after-ms': { isOurs: false, isExposed: true },
  /** `false` where no retry helps. */
  'x-should-retry': { isOurs: false, isExposed: true },
  /** Room in the limits of requests and of tokens that the caller's key or group has here, where the upstream tells none. */
  'x-ratelimit-limit-requests': { isOurs: false, isExposed: true },
  'x-ratelimit-remaining-requests': { isOurs: false, isExposed: true },
  'x-ratelimit-reset-requests': { isOurs: false, isExposed: true },
  'x-ratelimit-limit-tokens': { isOurs: false, isExposed: true },
  'x-ratelimit-remaining-tokens': { isOurs: false, isExposed: true },
  'x-ratelimit-reset-tokens': { isOurs: false, isExposed: true },
  /** The type of an error of ours in Bedrock's dialect, by which its SDKs raise their own. */
  'x-amzn-errortype': { isOurs: false, isExposed: false },
  /** `sandbox`, where a browser opens an upstream's answer as a page. */
  'content-security-policy': { isOurs: false, isExposed: false },
} as const satisfies Record<string, AnswerHeaderShape>;

/** The headers of ours on one answer. */
export type AnswerHeaders = Readonly<Partial<Record<keyof typeof ANSWER_HEADERS, string>>>;

const ROWS: readonly (readonly [string, AnswerHeaderShape])[] = Object.entries(ANSWER_HEADERS);

/** Names of the headers that an upstream may not send. */
export const FORGEABLE_HEADERS: readonly string[] = ROWS.filter(([, { isOurs }]) => isOurs).map(
  ([name]) => name,
);

/** Names of the headers that callers read. */
export const REPORTED_HEADERS: readonly string[] = ROWS.filter(
  ([, { isExposed }]) => isExposed,
).map(([name]) => name);

/** Puts headers on an answer, in place. */
export function putAnswerHeaders(headers: Headers, said: AnswerHeaders): void {
  for (const [name, value] of Object.entries(said)) headers.set(name, value);
}
