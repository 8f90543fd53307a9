import { CallNamesReader } from './call-names.ts';
import { sessionOf } from './call-session.ts';
import { changedSince } from './changed-since.ts';
import { forward } from './forward.ts';
import { hasAccountByNow } from './learn-account.ts';
import { measure, type Metering } from './metering.ts';
import { passThrough } from './pass-through.ts';
import { pickMember, type MemberRoute, type MemberPlan } from './members/member-plan.ts';
import { excludedMembers } from './attempts/where-next.ts';
import type { CallAdapter } from './drive.ts';
import { relocate } from './locate.ts';
import { atMember, forbiddenAt, planAt, type Candidate } from './plan.ts';
import type { Admission } from './acquire/admission.ts';
import { allOut } from './acquire/rejections.ts';
import {
  LEFT,
  rejected,
  type Moved,
  type Rejected,
  type Answered,
  type AttemptResult,
} from './result.ts';
import { targetOf, type CallTarget } from './target.ts';
import { readAhead } from './read-ahead.ts';
import { ReportedUsage } from './reported-usage.ts';
import type { CandidateAttempt } from './attempts/call-attempts.ts';
import { admitWithBody } from './wait-with-body.ts';

/**
 * Sends a call that has its slots. The first step is made before the wait, so that a granted slot is used at once.
 * `metering` is null if no group counts what the call uses.
 */
type SendTo<End> = (
  candidate: Candidate,
  turn: CandidateAttempt<End>,
  metering: Metering | null,
) => (admission: Admission) => Promise<AttemptResult<End>>;

/** Calls over HTTP, and sessions, which begin like them. */
export const httpCalls: CallAdapter<Answered> = {
  spills: true,
  untilAt: Infinity,
  attempt: (candidate, turn) =>
    candidate.located.operation.limited
      ? attemptAt(candidate, turn, sendOverHttp)
      : attemptUnlimited(candidate, turn),
  async plan(call, { located, spilledFrom }) {
    call.body.restore();
    const again = await relocate(call, spilledFrom ?? located);
    return again.kind === 'located' ? planAt(call, again) : again;
  },
};

const sendOverHttp: SendTo<Answered> = (candidate, turn, metering) => {
  const target = targetAt(candidate, turn, metering);
  const usage = metering ?? reportedUsageOf(candidate);
  return (admission) => forward({ candidate, turn, target, metering: usage, admission });
};

/** Sends a call that needs no slot. */
async function attemptUnlimited(
  candidate: Candidate,
  turn: CandidateAttempt,
): Promise<AttemptResult> {
  const forbidden = forbiddenAt(candidate);
  const changed = await changedSince(candidate.call);
  if (forbidden !== null) return changed ?? rejected(forbidden);
  return changed ?? passThrough(candidate, targetAt(candidate, turn, null));
}

/** Acquires the slots of a call, and then sends it to its upstream, or to the member where it was granted. */
export async function attemptAt<End>(
  candidate: Candidate,
  turn: CandidateAttempt<End>,
  send: SendTo<End>,
): Promise<AttemptResult<End>> {
  const { call, located, rules, members } = candidate;
  const forbidden = forbiddenAt(candidate);
  if (forbidden !== null) return (await changedSince(call)) ?? rejected(forbidden);
  const unread = call.body.isComing ? await readAhead(candidate) : null;
  if (unread !== null) return unread;
  const measured = rules.isMetered ? await measure(call, located) : null;
  if (measured !== null && measured.kind !== 'measured') return measured;
  const metering = measured?.metering ?? null;
  const sendHere = members === null ? send(candidate, turn, metering) : null;
  const admitted = await admitWithBody(candidate, turn, {
    ...call,
    team: call.caller.key?.team ?? null,
    listener: turn.listener,
    names: new CallNamesReader(candidate),
    session: sessionOf(candidate),
    metering:
      members === null ? metering : (metering?.beforeGrant(members.places.values()) ?? null),
    members:
      members === null ? null : { group: members.group, ...excludedMembers(members, turn.tries) },
  });
  if (admitted.kind !== 'admitted') return admitted;
  const { admission } = admitted;
  if (hasAccountByNow(candidate)) {
    await admission.release('unused');
    return { kind: 'moved', configVersion: call.table.snapshot.version };
  }
  try {
    if (sendHere !== null) return await sendHere(admission);
    const place = members === null ? null : placeOf(members, turn, admission);
    if (place?.kind !== 'place') {
      await admission.release('unused');
      return place ?? LEFT;
    }
    return await send(atMember(candidate, place), turn, metering?.at(place) ?? null)(admission);
  } catch (error) {
    await admission.release('failed'); // A bug of our own must not leak a slot.
    throw error;
  }
}

/** The meter of usage that the answer reports, for calls without a reservation. null if the usage counts nowhere. */
function reportedUsageOf({ call, located, rules, member }: Candidate): ReportedUsage | null {
  const { billed: group } = rules;
  if (group === null) return null;
  const billed = { group, team: call.caller.key?.team ?? null };
  return new ReportedUsage(located, billed, member?.member.config ?? null);
}

/**
 * The call's route at the member where it was granted. `moved` if this version of the configuration has no such member.
 */
function placeOf(
  members: MemberPlan,
  { tries: { refusedMembers } }: CandidateAttempt<unknown>,
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
