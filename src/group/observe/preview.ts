import type { MemberPreview, PoolPreview } from '../../contract/rpc/feed-rpc.ts';
import {
  heldAtMember,
  heldByCalls,
  memberSlotsLearned,
  slotsLearned,
} from '../../core/capacity.ts';
import { IMPLICIT, type InstantMs, type MemberId } from '../../core/words/ids.ts';
import { queueLength, Tombstones } from '../../core/parts/queue.ts';
import type { GroupSettings } from '../../core/words/settings.ts';
import type { GroupState } from '../../core/state.ts';
import { step } from '../../core/step.ts';
import { noPrefetching } from '../../core/parts/prefetches.ts';
import { emptyDecisionLog } from '../../core/parts/decision-log.ts';
import { definitionFrom, settingsOf } from '../definition.ts';
import { budgetSpent } from './status.ts';

/**
 * Applies a change to a copy of the state and counts what the core would do, so the result includes all lanes, shares
 * and rates.
 *
 * @param before the current group as JSON (`GroupConfig`), because a pool without calls may not have it
 * @param after the changed group
 * @param partition partition of the pool. The partition of calls with their own keys has no members.
 */
export function poolPreview(
  state: GroupState,
  before: string,
  after: string,
  now: InstantMs,
  partition: string | null = null,
): PoolPreview {
  const was = reconfigured(state, settingsFrom(before, partition), now);
  const { copy, effects } = reconfigured(state, settingsFrom(after, partition), now);
  const count = (kind: 'grant' | 'reject') => effects.filter((each) => each.kind === kind).length;
  return {
    slots: { from: finite(slotsLearned(was.copy)), to: finite(slotsLearned(copy)) },
    in_use: heldByCalls(state),
    queued: queueLength(state.queue),
    granted: count('grant'),
    refused: count('reject'),
    spends_budget: budgetSpent(was.copy, now) === null && budgetSpent(copy, now) !== null,
    members: memberPreviews(state, was.copy, copy),
  };
}

function reconfigured(state: GroupState, settings: GroupSettings, now: InstantMs) {
  const {
    tombstones: _tombstones,
    decisions: _decisions,
    affinity,
    lending: prefetching,
    ...plain
  } = state;
  const { paces: _paces, ...loans } = prefetching;
  // Classes would lose their methods. Ended calls and the call rates of isolates are irrelevant here.
  const cloned = structuredClone({ ...plain, lending: loans });
  const copy = {
    ...cloned,
    affinity: affinity.copy(),
    lending: { ...cloned.lending, paces: noPrefetching().paces },
    tombstones: new Tombstones(),
    decisions: emptyDecisionLog(),
  };
  return { copy, effects: step(copy, { kind: 'reconfigure', settings }, now) };
}

/** Returns the effect on each member. A group without members has none. */
function memberPreviews(
  state: GroupState,
  was: GroupState,
  will: GroupState,
): readonly MemberPreview[] {
  const ids = [...was.serving, ...will.serving].map(({ id }) => id);
  return [...new Set(ids)]
    .filter((id) => id !== IMPLICIT)
    .map((id) => {
      const member = state.members.get(id);
      const slots = { from: finite(slotsAt(was, id)), to: finite(slotsAt(will, id)) };
      return { member: id, slots, in_use: member === undefined ? 0 : heldAtMember(member) };
    });
}

function slotsAt({ serving }: GroupState, id: MemberId): number {
  const member = serving.find((each) => each.id === id);
  return member?.controls.outage.reason === null ? memberSlotsLearned(member) : 0;
}

function settingsFrom(config: string, partition: string | null): GroupSettings {
  const definition = definitionFrom({ version: 0, routingVersion: 0, config }, null);
  return settingsOf(definition, Infinity, partition);
}

function finite(slots: number): number | null {
  return Number.isFinite(slots) ? slots : null;
}
