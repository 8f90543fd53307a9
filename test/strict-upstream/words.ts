import { wholeSeconds } from './durations.ts';
import type { StrictRefusal, StrictRefusalKind } from './refusal.ts';

/** Words of a refusal, before the provider's envelope is round them. */
export interface Words {
  /** @default 429 */
  readonly status?: number;
  readonly type?: string;
  readonly code?: string;
  readonly param?: string;
  readonly message: string;
  /** Field that only one provider has. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** How one provider refuses. A kind that is missing has `plainWords`. */
export interface ProviderForms {
  readonly words: Partial<Record<StrictRefusalKind, (refusal: StrictRefusal) => Words>>;
  readonly body: (words: Words, refusal: StrictRefusal) => unknown;
  readonly headers: (refusal: StrictRefusal, words: Words) => Record<string, string>;
}

const PLAIN: Readonly<Record<StrictRefusalKind, Words>> = {
  concurrency: {
    type: 'rate_limit_error',
    code: 'rate_limit_exceeded',
    message: 'Too many concurrent requests.',
  },
  requests: {
    type: 'requests',
    code: 'rate_limit_exceeded',
    message: 'Rate limit exceeded: too many requests per minute.',
  },
  tokens: {
    type: 'tokens',
    code: 'rate_limit_exceeded',
    message: 'Rate limit exceeded: too many tokens per minute.',
  },
  overload: {
    status: 503,
    type: 'overloaded_error',
    code: 'overloaded',
    message: 'The service is overloaded, please try again later.',
  },
  quota: {
    status: 402,
    type: 'insufficient_quota',
    code: 'insufficient_quota',
    message: 'Insufficient balance.',
  },
  long_window: {
    type: 'rate_limit_error',
    code: 'rate_limit_exceeded',
    message: 'Rate limit exceeded: too many requests per day.',
  },
  never_fits: {
    status: 413,
    type: 'invalid_request_error',
    code: 'request_too_large',
    message: 'Request too large.',
  },
  ramp: {
    type: 'rate_limit_error',
    code: 'slow_down',
    message: 'Your requests increased too quickly. Please slow down.',
  },
};

/** Finds words where it is not known how the provider says it. */
export const plainWords = ({ kind }: StrictRefusal): Words => PLAIN[kind];

/** `Retry-After` in whole seconds, where the upstream knows how long. */
export const retryAfter = ({ waitMs }: StrictRefusal): Record<string, string> =>
  waitMs === null ? {} : { 'retry-after': wholeSeconds(waitMs) };
