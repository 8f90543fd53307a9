import type { Bill, Settlement } from '../core/words/ticket.ts';
import type { MemberConfig } from '../contract/config/members.ts';
import { costUsd, tierListOf, type Price } from '../providers/prices/price-table.ts';
import { tierFactor, tiersInAnswer } from '../providers/prices/tiers.ts';
import { aliasedModel, fallbackOf, FREE, isFree, priceAt } from '../routing/group-limits.ts';
import type { Placement } from '../routing/placement.ts';
import type { PipeMetering } from '../upstream/transfer/watched-pipe.ts';
import type { ServiceTiers } from '../upstream/usage/tiers.ts';
import { createReportMeter, type UsageMeter } from '../upstream/usage/usage-meter.ts';
import type { Settle } from './acquire/admission.ts';
import type { Located } from './locate.ts';

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
export class ReportedUsage {
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
