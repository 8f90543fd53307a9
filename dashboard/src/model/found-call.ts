import type * as z from 'zod';
import type { callSchema } from '../../../src/contract/admin/observation-schemas.ts';
import type { Frozen } from '../../../src/contract/frozen.ts';
import { refusalWords, WAIT_WORDS } from './call-words.ts';
import { scopeWords } from './scope-words.ts';

/** A line of the log that is kept of calls. */
export type FoundCall = Frozen<z.output<typeof callSchema>>;

/** The end of a call, in a word with a sign. */
export const OUTCOMES: Readonly<Record<FoundCall['outcome'], string>> = {
  success: '✓ answered',
  cancelled: '⇠ caller left',
  failed: '✕ failed',
  refused: '✕ refused by upstream',
  expired: '✕ lost',
  rejected: '✕ rejected',
  left: '⇠ left the queue',
  in_flight: '… in flight',
};

const KEPT_FOR: Readonly<Record<FoundCall['kept_for'], string>> = {
  refused: 'it was refused',
  retried: 'it was sent more than once',
  slow: 'it was slow',
  cost: 'it cost much',
  sample: 'a sample of the calls that nothing was wrong with',
  recent: 'it is yet in the memory of its pool, and need not be kept',
};

/** Picks what is most worth knowing: why it failed, else why it waited. */
export function whyOf({
  rejection,
  upstream_said: said,
  waited_for: cause,
  scope,
  sent,
}: FoundCall): string {
  const again = sent !== null && sent > 1 ? `sent ${sent} times · ` : '';
  if (rejection !== null) return again + rejection.replaceAll('_', ' ');
  if (said !== null && said !== 'served') return `${again}upstream: ${refusalWords(said)}`;
  if (cause === null) return `${again}at once`;
  return again + WAIT_WORDS[cause] + (scope === null ? '' : `: ${scopeWords(scope)}`);
}

/** Says why there is a line of it. */
export function keptBecause({ kept_for: why }: FoundCall): string {
  return KEPT_FOR[why];
}
