import { IMPLICIT, type InstantMs } from './words/ids.ts';
import { mayContain, namesOf } from './words/signal.ts';
import { TOMBSTONES_MAX } from './words/settings.ts';
import { LANES, type Lane } from './words/ticket.ts';
import { compareLines, compareWaiters, type Line } from './parts/queue.ts';
import { INVARIANTS } from './parts/totals.ts';
import { boundSlotsOf } from './leases.ts';
import { passesOn } from './nesting.ts';
import { countSlots, countAt, emptyMember, type Member } from './member.ts';
import { goneSettings, type GroupState, type ActiveLease } from './state.ts';
import { SCOPES_MAX } from './parts/lessons.ts';
import { nextTurn } from './grant.ts';

/** Lists what is wrong with the state, in words. Empty for a valid state. For tests and after a load. */
export function checkInvariants(state: GroupState, now: InstantMs): string[] {
  const broken = [
    ...brokenLeases(state),
    ...brokenMembers(state),
    ...brokenScopes(state),
    ...brokenOrphaned(state),
    ...brokenPrefetches(state),
    ...brokenLines(state),
    ...brokenAccounts(state),
  ];
  if (nextTurn(state, now)?.kind === 'grant') {
    broken.push('a waiter could take a free slot');
  }
  if (state.tombstones.size > TOMBSTONES_MAX) broken.push('too many tombstones');
  for (const invariant of INVARIANTS) {
    if (state.totals.violations[invariant] > 0) broken.push(`${invariant} was violated`);
  }
  return broken;
}

function brokenLeases(state: GroupState): string[] {
  const broken: string[] = [];
  let slots = 0;
  let cooling = 0;
  let waitingElsewhere = 0;
  let refused = 0;
  let nested = 0;
  const byLane = { high: 0, normal: 0, low: 0 };
  for (const lease of state.leases.values()) {
    slots += lease.slots;
    if (!isWellNested(state, lease)) {
      broken.push(`lease ${lease.id} takes more slots than its parent has`);
    }
    if (lease.phase === 'cooling') cooling += lease.slots;
    byLane[lease.lane] += lease.slots;
    if (lease.waitsElsewhere) waitingElsewhere += lease.slots;
    if (lease.isRefused) refused += lease.slots;
    nested += boundSlotsOf(lease) - lease.slots;
    if (state.leasesDueAt > lease.until) broken.push(`lease ${lease.id} has no alarm`);
    if (lease.phase !== 'cooling' && state.tombstones.has(lease.id)) {
      broken.push(`lease ${lease.id} is held and has ended`);
    }
  }
  if (cooling !== state.slotsCooling) broken.push('cooling slots drifted');
  if (nested !== state.slotsNested) broken.push('nested slots drifted');
  const prefetched = state.lending.slots;
  if (slots + prefetched + state.unclaimed.slots !== state.slotsInUse) {
    broken.push(
      `${state.slotsInUse} slots in use, but ${slots} in leases and ${prefetched} prefetched`,
    );
  }
  for (const lane of LANES) {
    if (byLane[lane] !== state.slotsByLane[lane]) broken.push(`slots of lane ${lane} drifted`);
  }
  if (waitingElsewhere !== state.slotsWaitingElsewhere) {
    broken.push('slots waiting elsewhere drifted');
  }
  if (refused !== state.slotsRefused) broken.push('refused slots drifted');
  return broken;
}

function brokenPrefetches({ lending: prefetching }: GroupState): string[] {
  const broken: string[] = [];
  let slots = 0;
  let idle = 0;
  for (const loan of prefetching.loans.values()) {
    slots += loan.slots.size;
    idle += Math.max(0, loan.slots.size - loan.used);
    if (loan.slots.size === 0) broken.push(`prefetch ${loan.id} is empty`);
    if (prefetching.growing.has(loan.isolate) === false && !loan.isRecalled) {
      broken.push(`prefetch ${loan.id} is neither growing nor recalled`);
    }
  }
  for (const loan of prefetching.growing.values()) {
    if (prefetching.loans.get(loan.id) !== loan) {
      broken.push(`prefetch ${loan.id} grows but does not exist`);
    }
  }
  if (slots !== prefetching.slots || idle !== prefetching.idle) {
    broken.push('prefetched slots drifted');
  }
  return broken;
}

/** The sums of the members match their leases, and add up to those of the group. */
function brokenMembers(state: GroupState): string[] {
  const broken: string[] = [];
  const sums = new Map<string, Member>();
  for (const { id, controls } of state.members.values()) {
    sums.set(id, emptyMember(goneSettings(id), controls));
  }
  for (const lease of state.leases.values()) {
    const sum = sums.get(lease.member);
    if (sum === undefined) broken.push(`${lease.id} has an unknown member`);
    else countAt(sum, lease, 1);
  }
  let unclaimed = 0;
  for (const member of state.members.values()) {
    unclaimed += member.unclaimed;
    const lent = member.id === IMPLICIT ? state.lending.slots : 0;
    const inUse = member.slotsInUse - member.unclaimed - lent;
    const own = { ...member, slotsInUse: inUse };
    const sum = sums.get(member.id);
    for (const name of COUNTED) {
      const isRight = sum?.[name] === own[name];
      if (!isRight) broken.push(`${name} of member ${member.id} drifted`);
    }
    if (!hasReserved(state, member)) {
      broken.push(`${member.id} reserves more or less than its calls`);
    }
    if (member.unclaimed < 0) broken.push(`${member.unclaimed} slots are orphaned at ${member.id}`);
  }
  if (unclaimed !== state.unclaimed.slots) broken.push('orphaned slots of members drifted');
  return broken;
}

/** The sums of each scope match its leases, and each lease is in all scopes that may contain it. */
function brokenScopes(state: GroupState): string[] {
  const broken: string[] = [];
  for (const member of state.members.values()) {
    const { narrower } = member.controls.scopes;
    if (narrower.length !== member.scopes.size || narrower.length > SCOPES_MAX) {
      broken.push(`${member.id} has ${member.scopes.size} scopes, but stores ${narrower.length}`);
    }
    for (const limiter of member.scopes.values()) {
      const sums = { slotsInUse: 0, slotsCooling: 0, slotsWaitingElsewhere: 0, slotsRefused: 0 };
      for (const lease of state.leases.values()) {
        const isIn = lease.scopes.some((one) => one.limiter === limiter);
        const mayBeIn =
          lease.member === member.id && mayContain(limiter.scope, namesOf(lease.holder));
        if (isIn !== mayBeIn) broken.push(`${lease.id} and its scopes differ`);
        if (isIn) countSlots(sums, lease, 1);
      }
      for (const name of SCOPE_SUMS) {
        if (sums[name] !== limiter[name]) broken.push(`${name} of a scope of ${member.id} drifted`);
      }
    }
  }
  return broken;
}

const SCOPE_SUMS = ['slotsInUse', 'slotsCooling', 'slotsWaitingElsewhere', 'slotsRefused'] as const;

/** Whether a member's budgets reserve what its leases do. While slots are orphaned, they reserve more. */
function hasReserved({ controls, leases, unclaimed }: GroupState, member: Member): boolean {
  if (!unclaimed.isOver || member.controls === controls) return true;
  let usd = 0;
  for (const lease of leases.values()) {
    if (lease.member === member.id) usd += lease.reserved?.usd ?? 0;
  }
  return Math.abs(member.controls.spend.reservedUsd - usd) < 1e-6;
}

const COUNTED = [...SCOPE_SUMS, 'slotsNested'] as const;

function brokenOrphaned({
  unclaimed,
  leases,
  revoking,
  seekingParent,
  coolingForKey,
  bound,
}: GroupState): string[] {
  const broken: string[] = [];
  if (unclaimed.slots < 0) broken.push(`${unclaimed.slots} slots are orphaned`);
  if (unclaimed.isOver && unclaimed.slots > 0) {
    broken.push('slots are orphaned although all are settled');
  }
  if (unclaimed.isOver && seekingParent.size > 0) {
    broken.push('a lease seeks its parent although no slots are orphaned');
  }
  for (const { id, phase } of leases.values()) {
    if ((phase === 'revoking') !== revoking.has(id)) {
      broken.push(`${id} and the set of revoked leases differ`);
    }
  }
  for (const id of revoking) {
    if (!leases.has(id)) broken.push(`${id} is revoked but does not exist`);
  }
  for (const lease of seekingParent) {
    const isThere = leases.get(lease.id) === lease && lease.phase !== 'cooling';
    if (!isThere) broken.push(`${lease.id} seeks its parent but is not held`);
    if (lease.nested === null || lease.slots === 0) {
      broken.push(`${lease.id} seeks a parent that it has or does not need`);
    }
  }
  for (const lease of coolingForKey) {
    const isThere = leases.get(lease.id) === lease && lease.phase === 'cooling';
    if (!isThere) broken.push(`${lease.id} cools down for its key but does not exist`);
  }
  for (const { granted } of [
    ...bound.inFlight,
    ...(bound.confirmed === null ? [] : [bound.confirmed]),
  ]) {
    if (granted < 0) broken.push('a write has a negative number of grants');
  }
  return broken;
}

/** Whether nested leases take no more slots than this one has, and whether its own parent, if any, is held. */
function isWellNested({ leases, nestedIn }: GroupState, lease: ActiveLease): boolean {
  let taken = 0;
  for (const each of nestedIn.get(lease.id) ?? []) {
    if (leases.get(each.id) !== each || passesOn(each) !== lease.id) return false;
    taken += each.nested?.slots ?? 0;
  }
  const root = passesOn(lease);
  if (root === null) return taken <= lease.slots;
  const phase = leases.get(root)?.phase ?? 'cooling';
  return taken === 0 && phase !== 'cooling' && nestedIn.get(root)?.has(lease) === true;
}

function brokenLines(state: GroupState): string[] {
  const { queue } = state;
  const broken: string[] = [];
  let waiting = 0;
  for (const lane of LANES) {
    const { lines, byTenant, backlogs, length } = queue.lanes[lane];
    const lengths = lines.map(({ waiters }) => waiters.length);
    const sum = lengths.reduce((total, each) => total + each, 0);
    waiting += sum;
    if (sum !== length) broken.push(`lane ${lane} counts ${length} waiters, not ${sum}`);
    if (byTenant.size !== lines.length) broken.push(`lane ${lane} and its index differ`);
    if (!isSorted(lines, compareLines)) broken.push(`lines of lane ${lane} are out of order`);
    const areCounted = backlogs.every(
      (tenants, index) => tenants === lengths.filter((each) => each > index).length,
    );
    if (!areCounted) broken.push(`backlogs of lane ${lane} drifted`);
    for (const line of lines) broken.push(...brokenLine(state, line, lane));
  }
  if (waiting !== queue.byTicket.size) broken.push('the queue and its index differ');
  for (const waiter of queue.nested) {
    if (queue.byTicket.get(waiter.ticket.id) !== waiter) {
      broken.push('a nested waiter is not in the queue');
    }
  }
  for (const waiter of queue.promoted) {
    if (queue.byTicket.get(waiter.ticket.id) !== waiter) {
      broken.push('a promoted waiter is not in the queue');
    }
  }
  return broken;
}

function brokenLine(state: GroupState, { tenant, waiters }: Line, lane: Lane): string[] {
  const broken: string[] = [];
  if (waiters.length === 0) broken.push('a line is empty');
  if (!isSorted(waiters, compareWaiters)) broken.push('a waiter is before an older one');
  for (const waiter of waiters) {
    const { leaseId } = waiter;
    const isAtHome = waiter.tenant === tenant && waiter.lane === lane;
    if (!isAtHome) broken.push(`${leaseId} is in the wrong line`);
    const isKnown = state.queue.promoted.has(waiter) === waiter.isPromoted;
    if (!isKnown) broken.push(`${leaseId} and the set of promoted waiters differ`);
    if (state.leases.has(leaseId)) broken.push(`${leaseId} is queued and has a lease`);
    if (state.tombstones.has(leaseId)) broken.push(`${leaseId} is queued and has ended`);
    if (state.waitersDueAt > waiter.deadlineAt) broken.push(`${leaseId} has no alarm`);
  }
  return broken;
}

function brokenAccounts({ accounts, slotsInUse, unclaimed, lending, queue }: GroupState): string[] {
  const broken: string[] = [];
  let slots = 0;
  let waiting = 0;
  let agentCount = 0;
  for (const tenant of accounts.tenants.values()) {
    slots += tenant.slots;
    waiting += tenant.waiting;
    agentCount += tenant.agents.size;
    let ofAgents = 0;
    let waitingOfAgents = 0;
    for (const agent of tenant.agents.values()) {
      if (agent.waiting > 0 !== tenant.waitingAgents.has(agent)) {
        broken.push(`agent ${agent.key} of ${tenant.key} and the set of waiting agents differ`);
      }
      ofAgents += agent.slots;
      waitingOfAgents += agent.waiting;
    }
    if (ofAgents !== tenant.slots || waitingOfAgents !== tenant.waiting) {
      broken.push(`tenant ${tenant.key} and its agents differ`);
    }
    if (LANES.some((lane) => !Number.isFinite(tenant.shares[lane].service))) {
      broken.push(`the service of tenant ${tenant.key} is not a number`);
    }
  }
  if (slots !== slotsInUse - unclaimed.slots - lending.slots) {
    broken.push(`tenants hold ${slots} slots, but ${slotsInUse} are in use`);
  }
  if (waiting !== queue.byTicket.size) broken.push('tenants and the queue count different waiters');
  if (agentCount !== accounts.agentCount) broken.push('the number of agents drifted');
  return broken;
}

function isSorted<Item>(items: readonly Item[], compare: (a: Item, b: Item) => number): boolean {
  return items.every((item, index) => {
    const before = items[index - 1];
    return before === undefined || compare(before, item) <= 0;
  });
}
