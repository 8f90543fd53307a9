import { useState } from 'preact/hooks';
import { duration } from '../../../format.ts';
import type { ExplainedCall } from '../../../model/call-story.ts';
import {
  rejectionWords,
  refusalWords,
  WAIT_WORDS,
  type DecisionView,
} from '../../../model/call-words.ts';
import { scopeWords } from '../../../model/scope-words.ts';
import { partitionName } from '../../../model/decoded.ts';
import { When } from '../../../ui/when.tsx';
import { CallStory } from './call-story-list.tsx';

interface CallLineProps {
  readonly group: string;
  readonly call: ExplainedCall;
  /** Longest wait in the list, which scales the bars. */
  readonly longestMs: number;
}

export function CallLine({ group, call, longestMs }: CallLineProps) {
  const [isOpen, setOpen] = useState(false);
  const { latest, attempts } = call;
  const waitedMs = attempts.reduce((sum, one) => sum + one.waited_ms, 0);
  const share = longestMs === 0 ? 0 : Math.min(1, waitedMs / longestMs);
  return (
    <li>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          <When at={latest.decided_at} />
          <span class={`outcome ${latest.outcome}`}>{OUTCOME_WORDS[latest.outcome]}</span>
          <span class="waited">
            <span class="bar" style={{ width: `${Math.round(100 * share)}%` }} />
            {duration(waitedMs)}
          </span>
          <span class="why">{whyOf(latest, attempts.length)}</span>
          <span class="who" title={whoOf(latest).join(' · ')}>
            {whoOf(latest).map((word, at) => (
              <>
                {at > 0 && ' · '}
                <bdi>{word}</bdi>
              </>
            ))}
          </span>
        </summary>
        {isOpen && <CallStory group={group} call={call} />}
      </details>
    </li>
  );
}

const OUTCOME_WORDS: Readonly<Record<DecisionView['outcome'], string>> = {
  granted: '✓ granted',
  rejected: '✕ rejected',
  left: '⇠ caller left',
  moved: '⇄ routed again',
};

/** Short reason of a call: why it failed, else why it waited. */
function whyOf(decision: DecisionView, attempts: number): string {
  const signal = decision.upstream_said;
  const again = attempts > 1 ? `${attempts} attempts · ` : '';
  if (decision.rejection !== null) return again + rejectionWords(decision.rejection);
  if (signal !== null && signal !== 'served') return `${again}upstream: ${refusalWords(signal)}`;
  const { waited_for: cause, scope } = decision;
  if (cause === null) return `${again}no wait`;
  return again + WAIT_WORDS[cause] + (scope === undefined ? '' : `: ${scopeWords(scope)}`);
}

function whoOf({
  lane,
  tenant,
  agent,
  model,
  upstream,
  partition,
}: DecisionView): readonly string[] {
  const pool = partition === null ? null : partitionName(partition);
  return [lane, tenant, agent, model ?? upstream, pool].filter((word) => word !== null);
}
