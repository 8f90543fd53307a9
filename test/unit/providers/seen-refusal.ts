import { instant } from '../../../src/core/words/ids.ts';
import type { RefusalScope, LimitHint, RefusalKind } from '../../../src/core/words/signal.ts';
import { providerOf } from '../../../src/providers/catalog.ts';
import { refusalRulesOf } from '../../../src/providers/limits.ts';
import type { UpstreamAnswer } from '../../../src/upstream/refusal/classify-refusal.ts';

/**
 * All that was recorded of some providers: each file of `seen` exports one as `SEEN`, and the conformance test
 * finds it there. Of a new provider it is the one file of tests that must be written.
 */
export interface RecordedProvider {
  readonly refusals?: readonly RecordedRefusal[];
  /**
   * Codes that tell a refusal of one provider alone, in the provider's own letters with spaces between them, by
   * `<provider>: <kind>, <scope>`.
   */
  readonly codes?: Readonly<Record<string, string>>;
  /** Words that tell one of one provider alone, and `<kind>, <scope>`. */
  readonly phrases?: readonly (readonly [provider: string, phrase: string, meaning: string])[];
  /** Limit headers by provider, and what they tell. */
  readonly headers?: Readonly<Record<string, SeenHeaders>>;
}

/** Rate-limit headers as a provider sent or documents them, and what is read in them. */
export type SeenHeaders = readonly [
  headers: Readonly<Record<string, string>>,
  ...hints: (readonly [
    dimension: LimitHint['dimension'],
    windowMs: number | null,
    limit: number | null,
    remaining: number | null,
    resetMs: number | null,
  ])[],
];

/** One refusal as a provider sent it, shortened only where it says nothing, and what it means. */
export interface RecordedRefusal {
  readonly name: string;
  readonly upstreamId: string;
  /** @default a host that nobody knows */
  readonly host?: string;
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
  readonly kind: RefusalKind;
  /** @default 'model', or 'call' for a call that never fits */
  readonly scope?: RefusalScope;
  /** @default null */
  readonly retryAfterMs?: number;
  /** @default null */
  readonly slotsMax?: number;
}

/** When the refusals were met. */
export const NOW = Date.parse('2026-10-06T12:00:00Z');

/** An answer of an upstream of some name at some host. */
export interface SeenAnswer extends Omit<UpstreamAnswer, 'rules'> {
  readonly upstreamId: string;
  readonly host: string;
}

/** A 429 without a word, at OpenAI behind a host that nobody knows. */
export function answer(changes: Partial<SeenAnswer> = {}): UpstreamAnswer {
  const { upstreamId = 'openai', host = 'upstream.test', ...others } = changes;
  const upstream = { id: upstreamId, baseUrl: `https://${host}` };
  return {
    rules: refusalRulesOf(upstream),
    headerProfile: providerOf(upstream)?.limitHeaders ?? null,
    status: 429,
    headers: new Headers(),
    body: '',
    now: instant(NOW),
    ...others,
  };
}

/** The answer that was recorded. */
export function answerOf({
  upstreamId,
  host,
  status,
  headers,
  body,
}: RecordedRefusal): UpstreamAnswer {
  const seen = { upstreamId, status, headers: new Headers(headers), body };
  return answer(host === undefined ? seen : { ...seen, host });
}
