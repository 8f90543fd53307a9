import type { PoolPreview } from '../../contract/rpc/change-preview.ts';
import { heldByCalls, slotsLearned } from '../../core/capacity.ts';
import type { InstantMs } from '../../core/words/ids.ts';
import { queueLength } from '../../core/parts/queue.ts';
import type { GroupSettings } from '../../core/words/settings.ts';
import type { GroupState } from '../../core/state.ts';
import { step } from '../../core/step.ts';
import { Tombstones } from '../../core/parts/tombstones.ts';
import { emptyDecisionLog } from '../../core/parts/decision-log.ts';
import { definitionFrom, settingsOf } from '../definition.ts';

/**
 * Makes the change to a copy of the state and counts what the core would do: the figures are those of the
 * change itself, whatever lanes, shares and rates say.
 *
 * @param before the group as it is, as JSON (`GroupConfig`): a pool without a call has not heard of it
 * @param after the group as it would be
 */
export function poolPreview(
  state: GroupState,
  before: string,
  after: string,
  now: InstantMs,
): PoolPreview {
  const { tombstones: _tombstones, decisions: _decisions, ...plain } = state;
  // What ended before is of no matter here, and a class would lose its methods.
  const copy = {
    ...structuredClone(plain),
    tombstones: new Tombstones(),
    decisions: emptyDecisionLog(),
  };
  const effects = step(copy, { kind: 'reconfigure', settings: settingsFrom(after) }, now);
  const count = (kind: 'grant' | 'reject') => effects.filter((each) => each.kind === kind).length;
  return {
    slots: {
      from: finite(slotsLearned({ ...state, settings: settingsFrom(before) })),
      to: finite(slotsLearned(copy)),
    },
    in_use: heldByCalls(state),
    queued: queueLength(state.queue),
    granted: count('grant'),
    refused: count('reject'),
  };
}

function settingsFrom(config: string): GroupSettings {
  return settingsOf(definitionFrom({ version: 0, routingVersion: 0, config }, null), Infinity);
}

function finite(slots: number): number | null {
  return Number.isFinite(slots) ? slots : null;
}
