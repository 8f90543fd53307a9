import { instant } from '../../../../src/core/words/ids.ts';
import type { RefusalKind } from '../../../../src/core/words/signal.ts';
import type { UpstreamAnswer } from '../../../../src/upstream/refusal/classify-refusal.ts';

/** One refusal as a provider sent it, shortened only where it says nothing, and what it means. */
export interface SeenRefusal {
  readonly name: string;
  readonly upstreamId: string;
  /** @default a host that nobody knows */
  readonly host?: string;
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
  readonly kind: RefusalKind;
  /** @default 'model' */
  readonly scope?: 'upstream';
  /** @default null */
  readonly retryAfterMs?: number;
  /** @default null */
  readonly slotsMax?: number;
}

/** When the refusals below were met. */
export const NOW = Date.parse('2026-10-06T12:00:00Z');

/** A 429 without a word, at OpenAI behind a host that nobody knows. */
export function answer(changes: Partial<UpstreamAnswer> = {}): UpstreamAnswer {
  return {
    upstreamId: 'openai',
    host: 'upstream.test',
    status: 429,
    headers: new Headers(),
    body: '',
    now: instant(NOW),
    ...changes,
  };
}
