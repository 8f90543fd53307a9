import { duration } from '../../format.ts';
import { reportedHeaders } from '../../model/test-call.ts';

/** Answer to a test call. */
export interface TestCallAnswer {
  readonly path: string;
  readonly status: number;
  /** Until its headers were there. */
  readonly tookMs: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly text: string;
  readonly isCut: boolean;
}

/** Shows an answer: whose it is, what Headgate says of it, and how it begins. */
export function CallAnswer({ answered }: { readonly answered: TestCallAnswer }) {
  const { path, status, tookMs, headers, text, isCut } = answered;
  const reported = reportedHeaders(headers);
  const said = new Map(reported);
  const reason = said.get('headgate-reason');
  const lease = said.get('headgate-lease');
  const [group] = (said.get('headgate-groups') ?? '').split(',');
  const isGood = status < 400;
  return (
    <div class="answer">
      <p>
        <b class={isGood ? 'good' : 'wrong'}>
          {isGood ? '✓' : '✕'} {status}
        </b>{' '}
        {whose(isGood, reason)} after {duration(tookMs)} <code>POST {path}</code>
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
      <pre tabIndex={0} role="region" aria-label="The beginning of the answer">
        {text}
        {isCut && '…'}
      </pre>
    </div>
  );
}

function whose(isGood: boolean, reason: string | undefined): string {
  if (isGood) return 'answered by the upstream';
  return reason === undefined ? "the upstream's own refusal" : `refused by Headgate: ${reason}`;
}
