import { count, duration, relative } from '../../format.ts';
import { attention, now, reportedAtOf } from '../../feed.ts';
import { attentionLine } from '../../model/attention.ts';
import { scopeWords } from '../../model/scope-words.ts';
import { slotsInWords } from '../../model/sentence.ts';
import { slotsOfGroup } from '../../model/slots.ts';
import type { GroupView } from '../../model/status.ts';
import { oldestWaitMs } from '../../model/oldest-wait.ts';
import { may } from '../../session.ts';
import { StateWord } from '../../ui/state-word.tsx';
import { GroupActions } from './group-actions.tsx';
import { TemporaryChips } from './temporary-chips.tsx';

export function GroupHead({ group }: { readonly group: GroupView }) {
  return (
    <header class="group-head">
      <div class="title">
        <h1>{group.name}</h1>
        <StateWord group={group} />
        <p class="summary">{summaryOf(group)}</p>
      </div>
      {group.kind !== 'configured' && <NoSettings group={group} />}
      <GroupActions group={group} />
      <TemporaryChips group={group} />
      {/* Always rendered, so that the content below does not move. */}
      <p class="attention">
        <bdi>{attentionLine(attention.value, group.name)}</bdi>
      </p>
    </header>
  );
}

function summaryOf(group: GroupView): string {
  const parts = [slotsInWords(slotsOfGroup(group))];
  if (group.cooling > 0) parts.push(`${count(group.cooling)} cooling down`);
  parts.push(`${count(group.queued)} queued`);
  const waitMs = oldestWaitMs(group, reportedAtOf(group.name), now.value);
  if (group.queued > 0) parts.push(`oldest ${duration(waitMs)}`);
  const until = group.paused_until;
  const stopped = group.about === undefined ? 'paused' : `${scopeWords(group.about)}: paused`;
  if (until !== null) parts.push(`${stopped}, ends ${relative(until, now.value)}`);
  return parts.join(' · ');
}

/** Explains groups without a configuration of their own, and where to change them. */
function NoSettings({ group }: { readonly group: GroupView }) {
  switch (group.kind) {
    case 'automatic':
      return (
        <p class="note">
          Headgate created this group automatically. <em>Set limits</em> gives it its own settings,
          and keeps its calls, its queue and what it has learned.{' '}
          {may('admin') && (
            <a href={`/admin/new?like=${encodeURIComponent(group.name)}`}>
              Create another group for these calls
            </a>
          )}
        </p>
      );
    case 'key':
      return (
        <p class="note">
          This group enforces the limits of a key. To change them, edit{' '}
          <a href="/admin/keys">the key</a>.
        </p>
      );
    case 'team':
      return (
        <p class="note">
          This group enforces the limits of a team. To change them, edit{' '}
          <a href="/admin/keys#teams">the team</a>.
        </p>
      );
    case 'retired':
      return <p class="note">This group is deleted. It is shown until its last call ends.</p>;
    case 'configured':
      return null;
  }
}
