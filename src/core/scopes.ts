import type { InstantMs } from './words/ids.ts';
import {
  ALL_CALLS,
  isSameScope,
  keysOfScopes,
  mayContain,
  namesOf,
  scopeKey,
  type Scope,
  type UpstreamSignal,
} from './words/signal.ts';
import type { Holder } from './words/ticket.ts';
import {
  copyOfLessons,
  undoNumbers,
  dependsOnResults,
  holdsCalls,
  isForgotten,
  leastNeeded,
  newLessons,
  noteUse,
  SCOPES_MAX,
  type Lessons,
  type ScopeLessons,
  type Scopes,
} from './parts/lessons.ts';
import { giveDrained, isDrained, noteDrained } from './parts/rates.ts';
import { areAllIn, confirmedScope, forgetOld, noteSeen } from './parts/evidence.ts';
import {
  countSlots,
  scopeLimiterOf,
  type Limiter,
  type ScopeLimiter,
  type Member,
} from './member.ts';
import type { GroupState, ActiveLease } from './state.ts';

/**
 * Refusals hold only the calls that they are about. A member's own controls hold all of its calls. It also has controls
 * of narrower scopes: a model, a service tier, a caller's own provider key, or several of these.
 *
 * While all calls are of one scope, its lessons are stored in the member's own controls, and `about` names the scope.
 * So a group with one model and one key has one state. The first call outside that scope moves the lessons to controls
 * of the scope. A refusal becomes the state of a wider scope when a second credential confirms it within a minute. For
 * errors without a cause, a second model does so too.
 */

/** How long a scope is remembered without a refusal, unless its pause lasts longer. */
const KEPT_MS = 3_600_000;

const PRUNE_EVERY_MS = 10_000;

const NO_SCOPES: readonly never[] = [];

const keys = new WeakMap<Holder, readonly string[]>();

function keysOf(holder: Holder): readonly string[] {
  let known = keys.get(holder);
  if (known === undefined) {
    known = keysOfScopes(namesOf(holder));
    keys.set(holder, known);
  }
  return known;
}

/** Finds a scope of a call at a member for which `isWanted` holds. null if there is none. */
export function findScope(
  { scopes }: Member,
  holder: Holder,
  isWanted: (limiter: ScopeLimiter) => boolean,
): ScopeLimiter | null {
  if (scopes.size === 0) return null;
  if (holder.isUnread === true) {
    const names = namesOf(holder);
    for (const limiter of scopes.values()) {
      if (mayContain(limiter.scope, names) && isWanted(limiter)) return limiter;
    }
    return null;
  }
  for (const key of keysOf(holder)) {
    const limiter = scopes.get(key);
    if (limiter !== undefined && isWanted(limiter)) return limiter;
  }
  return null;
}

export function scopesOf(member: Member, holder: Holder): readonly ScopeLimiter[] {
  if (member.scopes.size === 0) return NO_SCOPES;
  const found: ScopeLimiter[] = [];
  findScope(member, holder, (limiter) => {
    found.push(limiter);
    return false;
  });
  return found;
}

/** The calls to which lessons apply. Absent if they are all calls of a member. */
export function aboutCalls(limiter: Member | ScopeLimiter): { readonly scope?: Scope } {
  const scope = 'scope' in limiter ? limiter.scope : limiter.controls.scopes.about;
  return isSameScope(scope, ALL_CALLS) ? {} : { scope };
}

/** Whether calls are held by their model or tier, or may be soon. */
export function goesByNames({ serving }: GroupState, now: InstantMs): boolean {
  return serving.some(({ controls, settings: { breaker } }) => {
    const { about, narrower } = controls.scopes;
    if (isOfNames(about) && dependsOnResults(controls, breaker, now)) return true;
    return narrower.some((one) => isOfNames(one.scope) && dependsOnResults(one, breaker, now));
  });
}

/** Whether calls are held by their model or tier now. */
export function holdsByNames({ serving }: GroupState, now: InstantMs): boolean {
  return serving.some(({ controls }) => {
    const { about, narrower } = controls.scopes;
    if (isOfNames(about) && holdsCalls(controls, now)) return true;
    return narrower.some((one) => isOfNames(one.scope) && holdsCalls(one, now));
  });
}

/** Whether the lessons of a member apply to only some of its calls. */
export function goesByScopes({ controls: { scopes } }: Member): boolean {
  return scopes.narrower.length > 0 || !isSameScope(scopes.about, ALL_CALLS);
}

function isOfNames({ model, tier }: Scope): boolean {
  return model !== null || tier !== null;
}

/** Notes a call that requests a slot. The first call outside a scope moves the scope's lessons to separate controls. */
export function noteCall(state: GroupState, holder: Holder, now: InstantMs): void {
  const { seen } = state;
  const names = namesOf(holder);
  noteSeen(seen, names, now);
  for (const member of state.serving) {
    if (!mayContain(member.controls.scopes.about, names)) narrow(state, member, now);
    if (member.scopes.size > 0) noteUseOf(member, holder, now);
  }
  if (now < seen.prunedAt + PRUNE_EVERY_MS) return;
  seen.prunedAt = now;
  forgetOld(seen, now);
  for (const member of state.members.values()) prune(state, member, now);
}

/** Moves lessons of members to separate controls where calls wait to which they do not apply. */
export function separateFromWaiting(state: GroupState, now: InstantMs): void {
  for (const member of state.serving) {
    if (!areWaitingIn(state, member.controls.scopes.about)) narrow(state, member, now);
  }
}

function areWaitingIn({ queue }: GroupState, scope: Scope): boolean {
  if (isSameScope(scope, ALL_CALLS)) return true;
  for (const { ticket } of queue.byTicket.values()) {
    if (!mayContain(scope, namesOf(ticket.holder))) return false;
  }
  return true;
}

/** Whether a call certainly belongs to a limiter. An unread call may belong to a narrower scope. */
export function isSurelyIn(limiter: Limiter | ScopeLimiter, holder: Holder): boolean {
  if (!('scope' in limiter) || holder.isUnread !== true) return true;
  return mayContain(limiter.scope, { ...namesOf(holder), isUnread: false });
}

/** Notes that a call uses the scopes that it certainly belongs to. */
function noteUseOf({ scopes }: Member, holder: Holder, now: InstantMs): void {
  for (const key of keysOf(holder)) {
    const limiter = scopes.get(key);
    if (limiter !== undefined) noteUse(limiter.controls, holder.caller, now);
  }
}

/** Whether an answer applies to all calls of a member. With a caller's own key, only if no other key is in use. */
export function speaksForAll(
  state: GroupState,
  { holder }: Pick<ActiveLease, 'holder'>,
  now: InstantMs,
): boolean {
  const { credential } = namesOf(holder);
  return credential === null || areAllIn({ ...ALL_CALLS, credential }, state.seen, now);
}

/**
 * Finds the limiter of the calls that a refusal is about. null if it is about that call alone.
 *
 * @param signal without a scope, it is about all calls
 */
export function limiterOf(
  state: GroupState,
  member: Member,
  lease: ActiveLease,
  {
    kind,
    scope: about = 'upstream',
    reportedBy,
  }: Pick<UpstreamSignal, 'kind' | 'scope' | 'reportedBy'>,
  now: InstantMs,
): Limiter | null {
  if (about === 'call') return null;
  const { model, tier, credential } = namesOf(lease.holder);
  // A refusal of one tier says nothing about other tiers.
  const isOfTier = tier !== null && kind !== 'error' && kind !== 'served';
  const isOfModel = about === 'model' || about === 'tier' || isOfTier;
  let scope: Scope = {
    model: isOfModel ? model : null,
    tier: isOfTier ? tier : null,
    credential,
  };
  // A lease holder could make up a report that confirms the refusal of another key for all calls.
  if (kind !== 'served' && reportedBy === undefined) {
    scope = confirmedScope(state.seen, member.id, kind, scope, now);
  }
  return limiterAt(state, member, scope, lease.holder, now);
}

function limiterAt(
  state: GroupState,
  member: Member,
  scope: Scope,
  { caller }: Holder,
  now: InstantMs,
): Limiter {
  const { scopes } = member.controls;
  if (isSameScope(scopes.about, scope)) return member;
  const known = member.scopes.get(scopeKey(scope));
  if (known !== undefined) {
    known.controls.lastAt = now;
    noteUse(known.controls, caller, now);
    return known;
  }
  const isAll = isSameScope(scope, ALL_CALLS);
  const isBlank =
    member.reports.unconfirmed === null &&
    isForgotten(member.controls, member.settings.breaker, now);
  const isOfAllSeen = isAll || areAllIn(scope, state.seen, now);
  if (isBlank && isOfAllSeen && areWaitingIn(state, scope)) {
    setAbout(scopes, scope);
    return member;
  }
  if (isAll) {
    narrow(state, member, now);
    return member;
  }
  return addScope(state, member, { ...newLessons(scope, now), by: caller }, now);
}

function setAbout(scopes: Scopes, about: Scope): void {
  scopes.about = about;
  delete scopes.drained;
}

/**
 * Lowers what is left of a member's rate limits after a refusal. If the refusal is about some calls only, the first
 * other call undoes that.
 */
export function lowerRates(
  { controls, settings }: Member,
  now: InstantMs,
  lower: () => void,
): void {
  const { rates, scopes } = controls;
  if (isSameScope(scopes.about, ALL_CALLS)) return lower();
  scopes.drained ??= {};
  noteDrained(scopes.drained, rates, settings.rates, now, lower);
}

/** Moves the lessons of a member to the scope to which they apply. */
function narrow(state: GroupState, member: Member, now: InstantMs): void {
  const { controls, settings } = member;
  const { about, drained } = controls.scopes;
  if (drained !== undefined) {
    giveDrained(controls.rates, settings.rates, drained, now);
    state.isControlsDirty = true;
  }
  setAbout(controls.scopes, ALL_CALLS);
  leaveToScope(member);
  if (isForgotten(controls, settings.breaker, now)) return;
  const lessons = { ...newLessons(about, now), ...copyOfLessons(controls) };
  const limiter = addScope(state, member, lessons, now);
  for (const lease of state.leases.values()) {
    const there = lease.scopes.find((one) => one.limiter === limiter);
    const { slotsAtGrant, slotsCounted, gapMs } = lease;
    if (there !== undefined) Object.assign(there, { slotsAtGrant, slotsCounted, gapMs });
  }
  const empty = newLessons(ALL_CALLS, now);
  Object.assign(controls.ceiling, empty.ceiling);
  Object.assign(controls.pause, empty.pause);
  Object.assign(controls.breaker, empty.breaker);
  Object.assign(controls.lag, empty.lag);
  state.isControlsDirty = true;
}

/**
 * Ends a report whose effects move to a scope. As with a report about a scope, only its wait remains there. Its end
 * must not restore earlier lessons of the scope as those of all calls.
 */
function leaveToScope({ controls, reports }: Member): void {
  if (reports.unconfirmed === null) return;
  undoNumbers(controls, reports.unconfirmed.before);
  reports.unconfirmed = null;
}

function addScope(
  state: GroupState,
  member: Member,
  lessons: ScopeLessons,
  now: InstantMs,
): ScopeLimiter {
  const { narrower } = member.controls.scopes;
  if (narrower.length >= SCOPES_MAX) prune(state, member, now);
  if (narrower.length >= SCOPES_MAX) {
    const least = leastNeeded(narrower, now);
    if (least !== null) removeScope(state, member, least.scope);
  }
  narrower.push(lessons);
  const limiter = scopeLimiterOf(member, lessons);
  member.scopes.set(scopeKey(lessons.scope), limiter);
  for (const lease of state.leases.values()) {
    const isThere = lease.member === member.id && mayContain(lessons.scope, namesOf(lease.holder));
    if (isThere) enter(lease, limiter);
  }
  return limiter;
}

function removeScope(state: GroupState, member: Member, scope: Scope): void {
  const { narrower } = member.controls.scopes;
  const limiter = member.scopes.get(scopeKey(scope));
  narrower.splice(0, narrower.length, ...narrower.filter((one) => one !== limiter?.controls));
  member.scopes.delete(scopeKey(scope));
  for (const lease of state.leases.values()) {
    if (lease.scopes.length === 0) continue;
    lease.scopes = lease.scopes.filter((one) => one.limiter !== limiter);
  }
  state.isControlsDirty = true;
}

export function forgetScopes(state: GroupState, member: Member): void {
  for (const { scope } of member.controls.scopes.narrower.slice()) {
    removeScope(state, member, scope);
  }
  setAbout(member.controls.scopes, ALL_CALLS);
}

/** Creates the limiters of a member's scopes after its controls were replaced. */
export function restoreScopes(state: GroupState, member: Member): void {
  member.scopes.clear();
  for (const lessons of member.controls.scopes.narrower) {
    member.scopes.set(scopeKey(lessons.scope), scopeLimiterOf(member, lessons));
  }
  for (const lease of state.leases.values()) {
    if (lease.member === member.id) enterScopes(member, lease);
  }
}

export function enterScopes(member: Member, lease: ActiveLease): void {
  lease.scopes = NO_SCOPES;
  for (const limiter of scopesOf(member, lease.holder)) enter(lease, limiter);
}

function enter(lease: ActiveLease, limiter: ScopeLimiter): void {
  const notKnown = { slotsAtGrant: 0, slotsCounted: 0, gapMs: Infinity };
  lease.scopes = [...lease.scopes, { limiter, ...notKnown }];
  countSlots(limiter, lease, 1);
}

export function leaveScopes(lease: ActiveLease): void {
  for (const { limiter } of lease.scopes) countSlots(limiter, lease, -1);
  lease.scopes = NO_SCOPES;
}

/** Notes names in the body of a call that were read after its lease was granted. */
export function noteNames(
  state: GroupState,
  member: Member,
  lease: ActiveLease,
  { names }: UpstreamSignal,
  now: InstantMs,
): void {
  if (names === undefined || lease.holder.isUnread !== true) return;
  leaveScopes(lease);
  const { isUnread: _, tier: _tier, ...holder } = lease.holder;
  const { model, tier } = names;
  lease.holder = { ...holder, model, ...(tier !== null && { tier }) };
  enterScopes(member, lease);
  noteSeen(state.seen, namesOf(lease.holder), now);
}

/** Removes scopes that no longer have any effect. */
function prune(state: GroupState, member: Member, now: InstantMs): void {
  const { controls, settings } = member;
  const isOver = (lessons: Lessons): boolean => isForgotten(lessons, settings.breaker, now);
  for (const one of controls.scopes.narrower.slice()) {
    const isOld = now - one.lastAt > KEPT_MS && now >= one.pause.until;
    if (isOver(one) || isOld) removeScope(state, member, one.scope);
  }
  const { drained = {} } = controls.scopes;
  if (isOver(controls) && !isDrained(drained, settings.rates, now)) {
    setAbout(controls.scopes, ALL_CALLS);
  }
}
