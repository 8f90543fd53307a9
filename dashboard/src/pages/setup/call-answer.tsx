import { duration } from '../../format.ts';
import { reportedHeaders } from '../../model/test-call.ts';

export interface TestCallAnswer {
  readonly path: string;
  readonly status: number;
  /** Time until the response headers arrived. */
  readonly tookMs: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly text: string;
  readonly isCut: boolean;
}

/** Shows a response: its source, the headers that Headgate set, and its beginning. */
export function CallAnswer({ answered }: { readonly answered: TestCallAnswer }) {
  const { path, status, tookMs, headers, text, isCut } = answered;
  const reported = reportedHeaders(headers);
  const values = new Map(reported);
  const reason = values.get('headgate-reason');
  const lease = values.get('headgate-lease');
  const [group] = (values.get('headgate-groups') ?? '').split(',');
  const isGood = status < 400;
  return (
    <div class="answer">
      <p>
        <b class={isGood ? 'good' : 'wrong'}>
          {isGood ? '✓' : '✕'} {status}
        </b>{' '}
        {sourceOf(isGood, reason)} after {duration(tookMs)} <code>POST {path}</code>
        {lease !== undefined && group !== undefined && group !== '' && (
          <>
            {' '}
            <a
              href={`/admin/groups/${encodeURIComponent(group.trim())}?lease=${encodeURIComponent(lease)}`}
            >
              Explain this call
            </a>
          </>
        )}
      </p>
      <dl>
        {reported.map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </>
        ))}
      </dl>
      <pre tabIndex={0} role="region" aria-label="Beginning of the response">
        {text}
        {isCut && '…'}
      </pre>
    </div>
  );
}

function sourceOf(isGood: boolean, reason: string | undefined): string {
  if (isGood) return 'answered by the upstream';
  return reason === undefined ? 'refused by the upstream' : `refused by Headgate: ${reason}`;
}
