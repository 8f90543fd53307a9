import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { now } from '../../feed.ts';
import { count, usd } from '../../format.ts';
import {
  affinityInWords,
  consequenceOfSwitch,
  isOut,
  memberStateOf,
  outlookOf,
  pauseOf,
  slotsOfMember,
  type MemberView,
} from '../../model/members.ts';
import { sentenceOf, slotsInWords } from '../../model/sentence.ts';
import type { GroupView } from '../../model/status.ts';
import { BAND, WIDTH } from '../../picture/shapes.ts';
import { SmallSlots } from '../../picture/small-slots.tsx';
import { may } from '../../session.ts';
import { confirm } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';
import '../../ui/state-word.css';
import './member-rows.css';

/** Members of a group, in the order of their tiers. */
export function MemberRows({ group }: { readonly group: GroupView }) {
  const members = (group.members ?? []).toSorted((a, b) => a.tier - b.tier);
  if (members.length === 0) return null;
  const hasTiers = members.some(({ tier }) => tier !== members[0]?.tier);
  const affinity = affinityInWords(group);
  return (
    <section aria-labelledby="members-title">
      <h2 id="members-title">
        Members <small>{members.length}, where its calls run</small>
      </h2>
      <ul class="members" aria-labelledby="members-title">
        {members.map((member) => (
          <li key={member.id} aria-label={member.id}>
            <Row
              name={group.name}
              member={member}
              scopes={group.scopes ?? []}
              hasTiers={hasTiers}
              others={othersOf(member, members)}
            />
          </li>
        ))}
      </ul>
      {affinity !== null && <p class="help">{affinity}.</p>}
    </section>
  );
}

function othersOf(member: MemberView, members: readonly MemberView[]): number {
  return members.filter((each) => each !== member && !isOut(each)).length;
}

interface RowProps {
  readonly name: string;
  readonly member: MemberView;
  readonly scopes: NonNullable<GroupView['scopes']>;
  readonly hasTiers: boolean;
  /** Number of other members that receive calls. */
  readonly others: number;
}

function Row({ name, member, scopes, hasTiers, others }: RowProps) {
  const slots = slotsOfMember(member);
  const { words, tone } = memberStateOf(member, scopes);
  const outlook = outlookOf(member, now.value) ?? pauseOf(member, now.value, scopes);
  return (
    <>
      <b>
        {member.id}
        <small>
          {member.upstream ?? 'removed'}
          {hasTiers && `, tier ${member.tier}`}
        </small>
      </b>
      <svg
        class="picture small"
        role="img"
        aria-label={sentenceOf(slots, NO_QUEUE)}
        viewBox={`-1 -2 ${WIDTH + 2} ${BAND + 4}`}
      >
        <SmallSlots slots={slots} />
      </svg>
      <span class="how">
        <span class={`state ${tone}`}>{words}</span>
        {outlook !== null && (
          <small>
            <bdi>{outlook}</bdi>
          </small>
        )}
      </span>
      <span class="figures">
        <span>{slotsInWords(slots)}</span>
        <span>{count(member.granted_total)} granted</span>
        <span>{count(member.refused_total)} refused</span>
        {member.spend !== null && <span>{usd(member.spend.day_usd)} today</span>}
      </span>
      <Switch name={name} member={member} others={others} />
    </>
  );
}

/** Members have no queue of their own. */
const NO_QUEUE = {
  queued: 0,
  queued_by_lane: { high: 0, normal: 0, low: 0 },
  oldest_wait_ms: 0,
};

function Switch({ name, member, others }: Omit<RowProps, 'scopes' | 'hasTiers'>) {
  const [isBusy, setBusy] = useState(false);
  if (!may('operator') || member.retired === true) return <span />;
  const act = async (): Promise<void> => {
    const { done, ...question } = consequenceOfSwitch(member, others);
    if (!(await confirm(question))) return;
    setBusy(true);
    const params = { name, member: member.id };
    const back = isOut(member)
      ? await api('POST /groups/{name}/members/{member}/bring-back', { params })
      : null;
    const result = back ?? (await api('POST /groups/{name}/members/{member}/take-out', { params }));
    setBusy(false);
    if (!result.ok) return complain(`Nothing was changed. ${result.problem.detail}`);
    const silent = back?.ok === true ? back.body.unreachable.length : 0;
    if (silent === 0) say(done);
    else complain(`${done} Pools that did not respond: ${silent}.`);
  };
  const verb = isOut(member) ? 'Restore member' : 'Disable member';
  return (
    <button
      type="button"
      class="quiet"
      disabled={isBusy}
      aria-label={`${verb} ${member.id}`}
      onClick={() => void act()}
    >
      {verb}
    </button>
  );
}
