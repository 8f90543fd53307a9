import { instant, type MemberId } from './words/ids.ts';
import { HOLD_GUESS_MS, type GroupSettings } from './words/settings.ts';
import { emptyAccounts } from './parts/accounts.ts';
import { noAffinity } from './parts/affinity.ts';
import { nothingAhead } from './parts/ahead.ts';
import { emptyBound } from './parts/bound.ts';
import { emptyDecisionLog } from './parts/decision-log.ts';
import { noPrefetching } from './parts/prefetches.ts';
import { nothingPassedOver } from './parts/pass-over.ts';
import { emptyQueue } from './parts/queue.ts';
import { noRepeatRefusals } from './parts/repeat-refusals.ts';
import { Tombstones } from './parts/tombstones.ts';
import { emptyTotals } from './parts/totals.ts';
import { emptyControls, type Controls } from './controls.ts';
import { emptyMember, type KeptMember } from './member.ts';
import { goneSettings } from './members.ts';
import { renameMembers } from './renaming.ts';
import { nothingSeen } from './parts/seen-calls.ts';
import { serveMembers } from './serving.ts';
import { NEVER, type GroupState } from './state.ts';

/**
 * Creates a group without leases and waiters.
 *
 * @param firstAttachment must exceed every attachment number that an earlier instance issued
 * @param kept use and lessons of members that the group names or has named
 * @param isStored whether a bound on disk covers its grants
 */
export function emptyState(
  settings: GroupSettings,
  firstAttachment: number,
  controls: Controls = emptyControls(instant(0)),
  isStored = false,
  kept: ReadonlyMap<MemberId, Pick<KeptMember, 'controls' | 'place'>> = new Map(),
): GroupState {
  const state: GroupState = {
    settings,
    leases: new Map(),
    slotsInUse: 0,
    slotsByLane: { high: 0, normal: 0, low: 0 },
    unclaimed: { slots: 0, until: instant(0), isOver: true },
    lending: noPrefetching(),
    slotsNested: 0,
    slotsCooling: 0,
    slotsWaitingElsewhere: 0,
    slotsRefused: 0,
    revoking: new Set(),
    seekingParent: new Set(),
    coolingForKey: new Set(),
    nestedIn: new Map(),
    queue: emptyQueue(),
    accounts: emptyAccounts(),
    laneCredit: { high: 0, normal: 0, low: 0 },
    tombstones: new Tombstones(),
    grantsFrom: instant(0),
    drainsFrom: instant(0),
    dispersedAt: instant(0),
    leasesDueAt: NEVER,
    waitersDueAt: NEVER,
    holdMeanMs: HOLD_GUESS_MS,
    holdSamples: 0,
    passedOver: nothingPassedOver(),
    lastEndAt: instant(-Infinity),
    lastGrantAt: instant(-Infinity),
    nextSequence: 0,
    nextAttachment: firstAttachment,
    controls,
    members: new Map(),
    serving: [],
    guessRates: { itpm: null, otpm: null, tpm: null, tpd: null, usd: null },
    turns: 0,
    affinity: noAffinity(),
    repeatRefusals: noRepeatRefusals(),
    seen: nothingSeen(),
    bound: emptyBound(firstAttachment, isStored),
    isControlsDirty: false,
    talliesDirtyAt: null,
    ahead: nothingAhead(),
    roomDueAt: NEVER,
    overtakingDueAt: NEVER,
    heldOutUntil: NEVER,
    totals: emptyTotals(),
    upstreams: new Map(),
    upstreamsDueAt: NEVER,
    budgetStop: null,
    decisions: emptyDecisionLog(),
  };
  for (const [id, { controls: own, place = null }] of kept) {
    state.members.set(id, emptyMember({ ...goneSettings(id), place }, own));
  }
  renameMembers(state, settings.members, instant(0));
  serveMembers(state, instant(0));
  return state;
}
