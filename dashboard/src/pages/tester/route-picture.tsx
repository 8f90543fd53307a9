import type { AnswerAt } from '../../../../src/admin/client.ts';
import { groupNamed } from '../../feed.ts';
import { count } from '../../format.ts';
import { partitionName } from '../../model/decoded.ts';
import { limitWords } from '../../model/limit-words.ts';
import { slotsOfGroup } from '../../model/slots.ts';
import type { TestedForm } from '../../model/tested-call.ts';

type TesterAnswer = AnswerAt<'POST /tester'>;
type TestedPlacement = TesterAnswer['groups'][number];

export type TesterResult = Omit<TesterAnswer, 'groups'> & {
  readonly groups: readonly TestedPlacement[];
};

interface RoutePictureProps {
  readonly form: TestedForm;
  readonly tested: TesterResult;
}

/** Route of a call: its upstream, and its groups in the order in which slots are acquired. */
export function RoutePicture({ form, tested }: RoutePictureProps) {
  const { upstream, groups, refusal } = tested;
  return (
    <ol class="route">
      <li class="stop">
        <h2>Call</h2>
        <p>
          <b>{form.model.trim() || 'no model'}</b>
        </p>
        <p class="help">
          {form.path === '' ? form.operation : `${form.method} ${form.path}: ${tested.operation}`}
          {form.key !== '' && ` · key ${form.key}`}
        </p>
      </li>
      {upstream !== null && (
        <li class="stop">
          <h2>Upstream</h2>
          <p>
            <a href={`/admin/upstreams?q=${encodeURIComponent(upstream.id)}`}>
              <b>{upstream.id}</b>
            </a>{' '}
            <small>{upstream.dialect}</small>
          </p>
          <p class="help">
            {upstream.base_url}
            <br />
            {CHOSEN_WORDS[tested.chosen_by ?? 'upstream']}
            <br />
            {CREDENTIAL_WORDS[tested.credential ?? 'caller']}
          </p>
        </li>
      )}
      {groups.map((group, index) => (
        <GroupStop key={group.group} group={group} place={index + 1} of={groups.length} />
      ))}
      {refusal === null ? (
        <li class={groups.length === 0 ? 'stop end free' : 'stop end'}>
          <p>
            <b>{groups.length === 0 ? 'Passes without a slot' : '✓ Sent to the upstream'}</b>
          </p>
          <p class="help">{END_WORDS[Math.min(groups.length, 2)]}</p>
        </li>
      ) : (
        <li class="stop end refused">
          <p>
            <b>✕ Refused with {refusal.status}</b> <code>{refusal.reason}</code>
          </p>
          <p>{refusal.message}</p>
        </li>
      )}
    </ol>
  );
}

/** By the number of groups. The last entry applies to two or more. */
const END_WORDS = [
  'No group limits it.',
  'when it has its slot',
  'when it has a slot in each group',
] as const;

const CREDENTIAL_WORDS: Readonly<Record<NonNullable<TesterAnswer['credential']>, string>> = {
  operator: "receives the operator's key",
  caller: "receives the caller's key",
  none: 'receives no key',
};

const CHOSEN_WORDS: Readonly<Record<NonNullable<TesterAnswer['chosen_by']>, string>> = {
  upstream: 'named by the call',
  model: 'found by model',
  default: 'the default upstream',
};

interface StopProps {
  readonly group: TestedPlacement;
  readonly place: number;
  readonly of: number;
}

function GroupStop({ group: placement, place, of }: StopProps) {
  const { group, kind, partition, lane, limits, assumed } = placement;
  const now = groupNamed(group);
  const words = limits === null ? assumedWords(assumed) : limitWords(limits);
  return (
    <li class="stop group">
      <h2>{of === 1 ? 'Group' : `Group ${place} of ${of}`}</h2>
      <p>
        <a href={`/admin/groups/${encodeURIComponent(group)}`}>
          <b>{group}</b>
        </a>{' '}
        <small>{kind === 'key' || kind === 'team' ? `the ${kind}'s own limits` : kind}</small>
      </p>
      <ul class="limits">
        {words.map((word) => (
          <li>{word}</li>
        ))}
      </ul>
      <p class="help">
        lane {lane}
        {partition !== null && (
          <>
            {' · partition '}
            <bdi>{partitionName(partition)}</bdi>
          </>
        )}
        {placement.is_of_provider && ' · learns from the upstream'}
      </p>
      {now !== undefined && (
        <p class="help">
          now {now.state}: {now.in_use} of {count(slotsOfGroup(now).capacity)} in use, {now.queued}{' '}
          queued
        </p>
      )}
    </li>
  );
}

function assumedWords(assumed: TestedPlacement['assumed']): string[] {
  if (assumed === null) return [];
  const source =
    assumed.source === 'built_in' ? 'known for this provider' : 'assumed until learned';
  return [`${count(assumed.max_concurrency)} slots, ${source}`];
}
