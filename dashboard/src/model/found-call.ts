import type { AnswerAt } from '../../../src/admin/client.ts';
import { refusalWords, WAIT_WORDS } from './call-words.ts';
import { scopeWords } from './scope-words.ts';

export type FoundCall = AnswerAt<'GET /calls'>['calls'][number];

export const OUTCOMES: Readonly<Record<FoundCall['outcome'], string>> = {
  success: '✓ answered',
  cancelled: '⇠ caller left',
  failed: '✕ failed',
  refused: '✕ refused by upstream',
  expired: '✕ lease expired',
  rejected: '✕ rejected',
  left: '⇠ left the queue',
  in_flight: '… in flight',
};

const KEPT_FOR: Readonly<Record<FoundCall['kept_for'], string>> = {
  refused: 'it was refused',
  retried: 'it was retried',
  slow: 'it was slow',
  cost: 'it was expensive',
  sample: 'it is in the sample of other calls',
  recent: 'it is recent, and still in the memory of its pool',
};

/** Short reason of a call: why it failed, else why it waited. */
export function whyOf({
  rejection,
  upstream_said: signal,
  waited_for: cause,
  scope,
  sent,
}: FoundCall): string {
  const again = sent !== null && sent > 1 ? `sent ${sent} times · ` : '';
  if (rejection !== null) return again + rejection.replaceAll('_', ' ');
  if (signal !== null && signal !== 'served') return `${again}upstream: ${refusalWords(signal)}`;
  if (cause === null) return `${again}no wait`;
  return again + WAIT_WORDS[cause] + (scope === null ? '' : `: ${scopeWords(scope)}`);
}

export function keptBecause({ kept_for: why }: FoundCall): string {
  return KEPT_FOR[why];
}
