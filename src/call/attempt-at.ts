import { CallNamesReader } from './call-names.ts';
import { sessionOf } from './call-session.ts';
import { changedSince } from './changed-since.ts';
import { forward } from './forward.ts';
import { hasAccountByNow } from './learn-account.ts';
import { measure, type Metering } from './metering.ts';
import { passThrough } from './pass-through.ts';
import { pickMember, type MemberRoute, type MemberPlan } from './members/member-plan.ts';
import { excludedMembers } from './members/where-next-member.ts';
import { atMember, forbiddenAt, type Candidate } from './plan.ts';
import type { Admission } from './acquire/admission.ts';
import { allOut } from './acquire/rejections.ts';
import { never, rejected, type Moved, type Rejected, type AttemptResult } from './result.ts';
import { targetOf, type CallTarget } from './target.ts';
import { readAhead } from './read-ahead.ts';
import { ReportedUsage } from './reported-usage.ts';
import type { CandidateAttempt } from './call-attempts.ts';
import { admitWithBody } from './wait-with-body.ts';
import type { AdmitContext } from './acquire/admit-one.ts';

/** Sends a call to its upstream. A call that needs a slot waits for it first. */
export async function attemptAt(
  candidate: Candidate,
  turn: CandidateAttempt,
): Promise<AttemptResult> {
  const { call, located, rules, members } = candidate;
  const forbidden = forbiddenAt(candidate);
  if (forbidden !== null) return (await changedSince(call)) ?? rejected(forbidden);
  if (!located.operation.limited) {
    return (await changedSince(call)) ?? passThrough(candidate, targetAt(candidate, turn, null));
  }
  const unread = candidate.call.body.isComing ? await readAhead(candidate) : null;
  if (unread !== null) return unread;
  const measured = rules.isMetered ? await measure(call, located) : null;
  if (measured !== null && measured.kind !== 'measured') return measured;
  const metering = measured?.metering ?? null;
  const reported = metering === null ? reportedUsageOf(candidate) : null;
  const route =
    members === null
      ? asCalled(candidate, turn, metering, reported)
      : byMember(candidate, members, turn, metering, reported);
  const admitted = await admitWithBody(candidate, turn, {
    ...call,
    team: call.caller.key?.team ?? null,
    listener: turn.listener,
    names: new CallNamesReader(candidate),
    session: sessionOf(candidate),
    ...route,
  });
  switch (admitted.kind) {
    case 'admitted': {
      const { admission } = admitted;
      if (hasAccountByNow(candidate)) {
        await admission.release('unused');
        return { kind: 'moved', configVersion: call.table.snapshot.version };
      }
      try {
        return await route.send(admission);
      } catch (error) {
        await admission.release('failed'); // A bug of our own must not leak a slot.
        throw error;
      }
    }
    case 'moved':
    case 'rejected':
    case 'left':
      return admitted;
    default:
      return never(admitted);
  }
}

/** The meter of usage that the answer reports, for calls without a reservation. null if the usage counts nowhere. */
function reportedUsageOf({ call, located, rules: { billed } }: Candidate): ReportedUsage | null {
  if (billed === null) return null;
  return new ReportedUsage(located, { group: billed, team: call.caller.key?.team ?? null });
}

/** How a call asks its groups for slots, and how it is sent once it has them. */
interface AttemptContext extends Pick<AdmitContext, 'metering' | 'members'> {
  readonly send: (admission: Admission) => Promise<AttemptResult>;
}

/**
 * The route of a call to the upstream that its caller named. The target is built before the wait, so that a granted
 * slot is used at once.
 */
function asCalled(
  candidate: Candidate,
  turn: CandidateAttempt,
  metering: Metering | null,
  reported: ReportedUsage | null,
): AttemptContext {
  const target = targetAt(candidate, turn, metering);
  const send: AttemptContext['send'] = (admission) =>
    forward({ candidate, turn, target, metering: metering ?? reported, admission });
  return { metering, members: null, send };
}

/** The route of a call to a member. The grant determines the member. */
function byMember(
  candidate: Candidate,
  members: MemberPlan,
  turn: CandidateAttempt,
  metering: Metering | null,
  reported: ReportedUsage | null,
): AttemptContext {
  const send: AttemptContext['send'] = async (admission) => {
    const place = placeOf(members, turn, admission);
    if (place.kind !== 'place') {
      await admission.release('unused');
      return place;
    }
    const there = atMember(candidate, place);
    const meteredThere = metering?.at(place) ?? null;
    const target = targetAt(there, turn, meteredThere);
    const usage = meteredThere ?? reported?.at(place) ?? null;
    return forward({ candidate: there, turn, target, metering: usage, admission });
  };
  return {
    metering: metering?.beforeGrant(members.places.values()) ?? null,
    members: { group: members.group, ...excludedMembers(members, turn.tries) },
    send,
  };
}

/**
 * The call's route at the member where it was granted. `moved` if this version of the configuration has no such member.
 */
function placeOf(
  members: MemberPlan,
  { tries: { refusedMembers } }: CandidateAttempt,
  { member }: Admission,
): MemberRoute | Moved | Rejected {
  if (member === null) {
    return pickMember(members, (id) => refusedMembers.has(id)) ?? rejected(allOut(members.group));
  }
  const { id, configVersion } = member;
  return members.places.get(id) ?? { kind: 'moved', configVersion };
}

/** The target of a call. Requests an uncompressed answer if Headgate has to read it in transit. */
function targetAt(
  candidate: Candidate,
  { listener }: CandidateAttempt,
  metering: Metering | null,
): CallTarget {
  const target = targetOf(candidate);
  // An answer behind our own comments cannot be compressed, and tokens are counted in transit.
  if (listener !== null || metering !== null) target.headers.set('accept-encoding', 'identity');
  return target;
}
