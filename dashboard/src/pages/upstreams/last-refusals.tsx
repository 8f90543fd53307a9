import { duration } from '../../format.ts';
import { refusalWords } from '../../model/call-words.ts';
import type { LastRefusalView } from '../../model/upstream-view.ts';
import { When } from '../../ui/when.tsx';

export function LastRefusals({ refusals }: { readonly refusals: readonly LastRefusalView[] }) {
  return (
    <ul class="refusals">
      {refusals.map(({ kind, at, retry_after_ms: waitMs, model }) => (
        <li key={kind}>
          <When at={at} /> <b>{kind.replaceAll('_', ' ')}</b> {refusalWords(kind)}
          {waitMs !== null && `, asks for a pause of ${duration(waitMs)}`}
          {model !== null && (
            <small>
              {' '}
              <bdi>{model}</bdi>
            </small>
          )}
        </li>
      ))}
    </ul>
  );
}
