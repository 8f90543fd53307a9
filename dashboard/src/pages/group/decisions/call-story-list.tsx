import { useEffect, useState } from 'preact/hooks';
import { api } from '../../../api.ts';
import { groupNamed } from '../../../feed.ts';
import { exact } from '../../../format.ts';
import { callsOf, storyOf, type ExplainedCall } from '../../../model/call-story.ts';

const GROUPS_MAX = 4;

interface CallStoryListProps {
  readonly group: string;
  readonly call: ExplainedCall;
}

/** Story of a call in this group, and in other groups that it may have needed. */
export function CallStory({ group, call }: CallStoryListProps) {
  const parts = useParts(group, call);
  const { latest } = call;
  return (
    <div class="story">
      {parts.map((part) => (
        <section key={part.group}>
          {parts.length > 1 && (
            <h4>
              In <a href={`/admin/groups/${encodeURIComponent(part.group)}`}>{part.group}</a>
            </h4>
          )}
          <ol>
            {storyOf(part.call).map((step) => (
              <li class={step.tone}>
                {step.at === null ? <span /> : <time datetime={step.at}>{clock(step.at)}</time>}
                <span>{step.text}</span>
              </li>
            ))}
          </ol>
        </section>
      ))}
      <dl>
        <dt>Arrived</dt>
        <dd>{exact(call.attempts[0]?.arrived_at ?? latest.arrived_at)}</dd>
        <dt>Lane</dt>
        <dd>{latest.lane}</dd>
        <dt>Tenant</dt>
        <dd>
          <bdi>{latest.tenant}</bdi>
        </dd>
        <dt>Agent</dt>
        <dd>{latest.agent === null ? 'none' : <bdi>{latest.agent}</bdi>}</dd>
        <dt>Upstream</dt>
        <dd>{latest.upstream}</dd>
        <dt>Model</dt>
        <dd>{latest.model === null ? 'not read' : <bdi>{latest.model}</bdi>}</dd>
        <dt>Lease</dt>
        <dd>
          <code>{latest.lease}</code>
        </dd>
      </dl>
    </div>
  );
}

interface StoryPart {
  readonly group: string;
  readonly call: ExplainedCall;
}

/** All remembered attempts of the call, including those that the search excluded. */
function useParts(group: string, call: ExplainedCall): readonly StoryPart[] {
  const [parts, setParts] = useState<readonly StoryPart[]>([{ group, call }]);
  const { ticket } = call;
  useEffect(() => {
    let isOver = false;
    const ask = async (): Promise<void> => {
      const others = groupNamed(group)?.overlaps_with.slice(0, GROUPS_MAX - 1) ?? [];
      const asked = await Promise.all([group, ...others].map((name) => partOf(name, ticket)));
      const found = asked.filter((part) => part !== null);
      if (!isOver && found.length > 0) setParts(found);
    };
    ask().catch(() => undefined);
    return () => {
      isOver = true;
    };
  }, [group, ticket]);
  return parts;
}

async function partOf(group: string, ticket: string): Promise<StoryPart | null> {
  const query = { lease: ticket };
  const result = await api('GET /groups/{name}/decisions', { params: { name: group }, query });
  const call = result.ok ? callsOf(result.body.decisions)[0] : undefined;
  return call === undefined ? null : { group, call };
}

const CLOCK = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 1,
});

function clock(at: string): string {
  return CLOCK.format(Date.parse(at));
}
