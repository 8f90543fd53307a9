import type { Bill, Settlement } from '../../core/words/ticket.ts';
import type { MemberConfig } from '../../contract/config/members.ts';
import { costUsd, tierListOf, type Price } from '../../providers/prices/price-table.ts';
import { tierFactor, tiersInAnswer } from '../../providers/prices/tiers.ts';
import { aliasedModel, fallbackOf, FREE, isFree, priceAt } from '../../routing/group-limits.ts';
import type { Placement } from '../../routing/placement.ts';
import type { PipeMetering } from '../../upstream/transfer/watched-pipe.ts';
import type { ServiceTiers } from '../../upstream/usage/tiers.ts';
import { createReportMeter, type UsageMeter } from '../../upstream/usage/usage-meter.ts';
import { CallNamesReader, sessionOf, readAhead } from '../plan/call-names.ts';
import { changedSince } from '../request/call.ts';
import { forward } from '../answer/forward.ts';
import { hasAccountByNow } from '../answer/sending.ts';
import { measure, type Metering } from '../plan/metering.ts';
import { passThrough } from '../answer/relay.ts';
import { pickMember, type MemberRoute, type MemberPlan } from '../plan/member-plan.ts';
import { excludedMembers } from '../attempts/where-next.ts';
import { relocate, type Located } from '../request/locate.ts';
import { atMember, forbiddenAt, planAt, type Candidate } from '../plan/plan.ts';
import type { Admission } from '../acquire/admission.ts';
import { allOut } from '../acquire/rejections.ts';
import {
  LEFT,
  rejected,
  type Moved,
  type Rejected,
  type Answered,
  type AttemptResult,
  type Settle,
} from '../results/result.ts';
import { targetOf, type CallTarget } from '../plan/target.ts';
import type { CandidateAttempt } from '../attempts/call-attempts.ts';
import { admitWithBody } from '../acquire/admit.ts';
import type { CallAdapter } from './drive.ts';

/** One attempt of a call at one candidate: its slots, its upstream and its usage. */

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
      members === null
        ? null
        : { group: members.group, ...excludedMembers(members, turn.attempts) },
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
  { attempts: { refusedMembers } }: CandidateAttempt<unknown>,
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

type EndedMeter = Pick<UsageMeter, 'end' | 'isLost'>;

interface Billed {
  /** The group whose costs include the call. */
  readonly group: string;
  readonly team: string | null;
}

/**
 * The usage of a call as its provider reports it in any case. Nothing is read, estimated or reserved before the call
 * starts, and nothing about the call changes. The only cost is the search for the report in the answer. A call without
 * a report counts with no tokens.
 */
class ReportedUsage {
  readonly #located: Located;
  readonly #billed: Billed;
  readonly #member: MemberConfig | null;
  #reported: ServiceTiers = {};

  /** @param member the member of its group that runs the call. null if its group has none */
  constructor(located: Located, billed: Billed, member: MemberConfig | null = null) {
    this.#located = located;
    this.#billed = billed;
    this.#member = member;
  }

  /** Nothing is requested from the upstream, so the answer passes unchanged. */
  withoutPacking(answer: Response): Response {
    return answer;
  }

  meterFor({ headers }: Response): UsageMeter | null {
    this.#reported = tiersInAnswer(headers);
    return createReportMeter(
      this.#located.operation.shape,
      headers.get('content-type'),
      headers.get('content-encoding'),
    );
  }

  pipeFor(meter: UsageMeter | null): PipeMetering | null {
    return meter === null ? null : { meter, filter: null };
  }

  /** Settles a call that has ended. Undefined if the form of its answer never has a report. */
  settlement(meter: EndedMeter | null): Settle | undefined {
    if (meter === null) return undefined;
    const { usage, tiers, model = null } = meter.end();
    const { upstream, model: named } = this.#located;
    const bill: Bill = { team: this.#billed.team, model: named ?? model };
    if (usage === null) return (placement) => this.#for(placement, UNREPORTED, bill);
    const price = priceAt({ upstream, model: bill.model }) ?? this.#ofMember();
    const priced = bill.model === null ? null : aliasedModel(upstream, bill.model);
    const prices = { list: tierListOf(upstream), model: priced, own: price?.tiers ?? {} };
    const factor = tierFactor(prices, { ...this.#reported, ...tiers }, false);
    const { inputTokens, outputTokens, cacheReadTokens: cachedTokens } = usage;
    const seen = { inputTokens, outputTokens };
    return (placement) => {
      const counted = price ?? this.#otherwise(placement);
      const usd = counted === null ? 0 : costUsd(counted, usage) * factor;
      const isUnpriced = counted === null;
      const used = { requests: 1, ...seen, usd, seen, cachedTokens, isUnpriced };
      return this.#for(placement, used, bill);
    };
  }

  #ofMember(): Price | null {
    return this.#member === null ? null : fallbackOf(this.#member);
  }

  /** The price if neither the upstream nor its member has one. null if there is none at all. */
  #otherwise({ config }: Placement): Price | null {
    const ofGroup = config === null ? null : fallbackOf(config);
    return ofGroup ?? (isFree(this.#located.upstream) ? FREE : null);
  }

  #for({ group }: Placement, used: Settlement, bill: Bill): Settlement {
    return group === this.#billed.group ? { ...used, bill } : used;
  }
}

const UNREPORTED: Settlement = {
  requests: 1,
  inputTokens: 0,
  outputTokens: 0,
  usd: 0,
  seen: null,
};
