import { useEffect, useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { duration } from '../../format.ts';
import { refusalWords, type Decision } from '../../model/call-words.ts';
import { lastRefusals, type UpstreamInfo } from '../../model/upstream-view.ts';
import { When } from '../../ui/when.tsx';
import { DECISIONS_MAX } from '../../../../src/core/parts/decision-log.ts';

/** Maximum of groups that are asked for their decisions at once. */
const GROUPS_MAX = 8;

/** The last refusal of each kind, as far as groups remember. */
export function LastRefusals({ upstream }: { readonly upstream: UpstreamInfo }) {
  const [found, setFound] = useState<readonly Decision[] | null>(null);
  const { id, groups } = upstream;
  useEffect(() => {
    let isOver = false;
    const ask = async (): Promise<void> => {
      const asked = await Promise.all(
        groups
          .slice(0, GROUPS_MAX)
          .map((name) =>
            api('listDecisions', { params: { name }, query: { limit: DECISIONS_MAX } }),
          ),
      );
      const decisions = asked.flatMap((result) => (result.ok ? result.body.decisions : []));
      if (!isOver) setFound(lastRefusals(decisions, id));
    };
    ask().catch(() => undefined);
    return () => {
      isOver = true;
    };
  }, [id]);
  if (found === null) return <p class="refusals" aria-busy="true" />;
  if (found.length === 0) {
    return (
      <p class="refusals help">
        None is remembered any more: groups know their last {DECISIONS_MAX} decisions, in memory.
      </p>
    );
  }
  return (
    <ul class="refusals">
      {found.map((refusal) => (
        <li key={refusal.upstream_said}>
          <When at={refusal.decided_at} /> <b>{refusal.upstream_said?.replaceAll('_', ' ')}</b>{' '}
          {refusal.upstream_status !== null && <code>{refusal.upstream_status}</code>}{' '}
          {refusalWords(refusal.upstream_said ?? '')}
          {refusal.upstream_retry_after_ms !== null &&
            `, wants to be left alone for ${duration(refusal.upstream_retry_after_ms)}`}
          {refusal.model !== null && <small> {refusal.model}</small>}
        </li>
      ))}
    </ul>
  );
}
