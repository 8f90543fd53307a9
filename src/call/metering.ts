import { mediaType } from '../runtime/header-value.ts';
import type { GroupConfig } from '../contract/config/config.ts';
import type { MemberConfig } from '../contract/config/members.ts';
import { aliasedModel, fallbackOf, FREE, hasBudget, isFree, priceAt } from '../routing/metered.ts';
import type { ErrorReply } from '../contract/reasons.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import type { CallEstimate, Settlement, TokenPrices } from '../core/words/usage.ts';
import type { Placement } from '../routing/placement.ts';
import { countedTokens, limitProfileFor } from '../providers/limit-profiles.ts';
import type { LimitProfile } from '../providers/provider.ts';
import { costUsd, tierListOf, type Price } from '../providers/prices/price-table.ts';
import {
  tierFactor,
  tiersInAnswer,
  unknownTier,
  withTierHeaders,
  type TierPrices,
} from '../providers/prices/tiers.ts';
import { logEvent } from '../runtime/log.ts';
import { isPlain, packingsOf, unpacked } from '../upstream/body/packing.ts';
import type { BodyCallEstimate as BodyEstimate } from '../upstream/usage/estimate.ts';
import { estimateBody } from '../upstream/usage/packed-estimate.ts';
import { injectUsage } from '../upstream/usage/inject-usage.ts';
import type { PipeMetering } from '../upstream/usage/metered-pipe.ts';
import { NO_TIERS, type ServiceTiers } from '../upstream/usage/tiers.ts';
import { createUsageDrop } from '../upstream/usage/usage-drop.ts';
import {
  createUsageMeter,
  TEXT_BYTES_PER_TOKEN,
  type UsageMeter,
} from '../upstream/usage/usage-meter.ts';
import type { Settle } from './acquire/admission.ts';
import type { AuthenticatedCall } from './call.ts';
import type { Located } from './locate.ts';
import { LEFT, rejected, type CallerLeft, type Rejected } from './result.ts';

/** Maximum size of a body that is read for its estimate. A larger one is estimated by its length alone. */
export const READ_BYTES_MAX = 4_194_304;

/** Bytes that a body of unknown length is taken for: 16,000 tokens, so that it does not slip past a limit. */
const UNKNOWN_BYTES = 65_536;

const TOKENS_PER_PRICE = 1_000_000;

/** A call whose tokens or cost some group counts, with its body read as far as that needs. */
interface MeasuredCall {
  readonly kind: 'measured';
  readonly metering: Metering;
}

/** Measures a call by what its caller says of it: it is not made through Headgate. */
export function measureAsSaid(
  located: Located,
  said: { readonly inputTokens: number | null; readonly outputTokens: number | null },
): Metering {
  return new Metering(located, {
    inputTokens: said.inputTokens ?? UNKNOWN_BYTES / TEXT_BYTES_PER_TOKEN,
    isInputGuess: said.inputTokens === null,
    maxOutputTokens: said.outputTokens,
    isStream: false,
    wantsUsage: false,
    tiers: NO_TIERS,
  });
}

/** Looks into the body of a call for what it will use. Rejected: what was left of the body may not go out. */
export async function measure(
  { request, body }: AuthenticatedCall,
  located: Located,
): Promise<MeasuredCall | Rejected | CallerLeft> {
  const { headers, signal } = request;
  const { contentLength } = body;
  const kept = await body.keep(READ_BYTES_MAX, signal);
  if (kept === 'aborted') return body.fault === null ? LEFT : rejected(body.fault);
  const { bytes } = body;
  const facts = {
    chunks: bytes === null ? [] : [bytes],
    contentLength: contentLength ?? UNKNOWN_BYTES,
    contentType: headers.get('content-type'),
    contentEncoding: body.encodingIn(headers),
  };
  const { estimate, isRead } = await estimateBody(facts);
  // A body may cost much less than its length suggests: a file costs the same whatever its size.
  const isUnread = kept === 'not kept' || !isRead;
  const tiers = withTierHeaders(estimate.tiers, headers);
  const metering = new Metering(located, { ...estimate, tiers, isInputGuess: isUnread });
  return { kind: 'measured', metering };
}

/** The expected use of a call, as each of its groups counts it. */
export type UseEstimator = Pick<Metering, 'estimateFor' | 'rejectUnpriced' | 'rejectTier'>;

/** A member of a group, and where a call lies there. */
interface MeteredMember {
  readonly id: string;
  readonly located: Located;
  readonly member: { readonly config: MemberConfig };
}

/** The prices of a call at its members: that of all of them, or the highest for whoever knows of none, and each. */
function pricesOf(
  all: readonly (readonly [id: string, price: TokenPrices | null])[],
): Pick<CallEstimate, 'price' | 'pricesAt'> | null {
  const known = all.flatMap(([id, price]) => (price === null ? [] : [{ id, price }]));
  if (known.length === 0) return null;
  const highest = (of: keyof TokenPrices): number =>
    Math.max(...known.map(({ price }) => price[of]));
  const price = { input: highest('input'), output: highest('output') };
  const isSame = known.every(
    (each) => each.price.input === price.input && each.price.output === price.output,
  );
  if (isSame) return { price };
  return { price, pricesAt: Object.fromEntries(known.map((each) => [each.id, each.price])) };
}

/** For an answer in which no usage can be read, and some may have to be removed. */
const NO_METER: Pick<UsageMeter, 'push'> = { push: () => {} };

/** The expected use of a call. */
type EstimatedUse = Omit<BodyEstimate, 'leastInputTokens'> &
  Pick<CallEstimate, 'isInputGuess' | 'leastInputTokens'>;

/**
 * Upstreams of this isolate that compressed a stream in a coding that cannot be undone, although plain bytes were asked for.
 * Their streams are no longer asked for usage that the caller did not ask for.
 */
const unremovable = new Set<string>();

/** Maximum characters of an upstream's header in a log line. */
const LOGGED_CHARS_MAX = 100;

/** The use of one call before, during and after it, as each of its groups counts it. */
export class Metering {
  /** Whether the usage is asked for on the caller's behalf, as far as the body lets it. */
  readonly #asksUsage: boolean;
  /** True: what went out asks for it. */
  #hasAsked = false;
  readonly #upstream: Upstream;
  readonly #shape: Located['operation']['shape'];
  readonly #model: string | null;
  readonly #profile: LimitProfile;
  readonly #estimate: EstimatedUse;
  readonly #inputTokens: number;
  readonly #maxOutputTokens: number | null;
  readonly #price: Price | null;
  readonly #tierPrices: TierPrices;
  /** The tiers that the headers of the answer report. */
  #reported: ServiceTiers = {};

  /** @param fallback price where none is known, before that of a group */
  constructor(located: Located, estimate: EstimatedUse, fallback: Price | null = null) {
    const { upstream, operation, model } = located;
    const asks = upstream.injectsUsage && estimate.isStream && !estimate.wantsUsage;
    const isRemovable = !unremovable.has(upstream.id);
    this.#asksUsage = asks && isRemovable && operation.name === 'chat';
    this.#estimate = estimate;
    this.#upstream = upstream;
    this.#shape = operation.shape;
    this.#model = model === null ? null : aliasedModel(upstream, model);
    this.#profile = limitProfileFor(upstream, this.#model);
    this.#inputTokens = estimate.inputTokens;
    this.#maxOutputTokens = estimate.maxOutputTokens;
    this.#price = priceAt(located) ?? fallback;
    const list = tierListOf(upstream);
    this.#tierPrices = { list, model: this.#model, own: this.#price?.tiers ?? {} };
  }

  /** Measures the same call at a member of its group, which runs it at prices of its own. */
  at({ located, member }: MeteredMember): Metering {
    return new Metering(located, this.#estimate, fallbackOf(member.config));
  }

  /** Estimates a call before it is known at which member it runs, and so what it costs. */
  beforeGrant(places: Iterable<MeteredMember>): UseEstimator {
    const there = [...places].map((place) => [place, this.at(place)] as const);
    const [, first] = there[0] ?? [];
    const asked = this.#price === null ? (first ?? this) : this;
    // The call may run at any of them.
    const rejectTier: UseEstimator['rejectTier'] = (placement) => {
      const replies = there.map(([{ member }, at]) =>
        at.rejectTier(placement, member.config.limits),
      );
      return replies.find((reply) => reply !== null) ?? null;
    };
    return {
      rejectUnpriced: (placement) => asked.#rejectPrice(placement) ?? rejectTier(placement),
      rejectTier,
      estimateFor: (placement) => {
        const of = there.map(([{ id }, at]) => [id, at.estimateFor(placement).price] as const);
        return { ...asked.estimateFor(placement), ...pricesOf(of) };
      },
    };
  }

  /**
   * Makes what goes out in place of the body, where it asks for the usage on the caller's behalf; null: the body
   * itself. The body stays as it came, or a second try could not tell that it was not the caller; and the copy is made
   * when it goes out, for a call may wait for long.
   */
  readonly asking = (bytes: Uint8Array): Uint8Array | null => {
    const asking = this.#asksUsage ? injectUsage(bytes) : null;
    this.#hasAsked = asking !== null;
    return asking;
  };

  /** Estimates what a group reserves for the call. */
  estimateFor({ config }: Placement): CallEstimate {
    const price = this.#priceFor(config);
    const factor = this.#factorFor({});
    const { isInputGuess = false, leastInputTokens } = this.#estimate;
    return {
      inputTokens: this.#inputTokens,
      ...(isInputGuess && { isInputGuess }),
      ...(leastInputTokens !== undefined && { leastInputTokens }),
      maxOutputTokens: this.#maxOutputTokens,
      reserve: this.#profile.reserveOutput,
      price:
        price === null
          ? null
          : {
              input: (price.inputUsd * factor) / TOKENS_PER_PRICE,
              output: (price.outputUsd * factor) / TOKENS_PER_PRICE,
            },
    };
  }

  /** The error reply to a call of a group with a budget, if the price of its model is not known; null: it is known. */
  rejectUnpriced(placement: Placement): ErrorReply | null {
    return this.#rejectPrice(placement) ?? this.rejectTier(placement);
  }

  #rejectPrice({ config, group }: Placement): ErrorReply | null {
    if (config === null || config.dry_run || !hasBudget(config.limits)) return null;
    if (this.#priceFor(config) !== null) return null;
    const model =
      this.#model === null
        ? 'The call names no model'
        : `The price of the model ${this.#model} at ${this.#upstream.id} is not known`;
    const message = `${model}, and the group ${group} has a budget. Set prices at the upstream, or limits.budget_usd.fallback_price at the group.`;
    return { reason: 'price_unknown', message };
  }

  /**
   * The error reply to a call of a group with a budget, if the price of its tier is not known; null: it is known.
   * `member`: limits of the member that it may run at.
   */
  rejectTier({ config, group }: Placement, member?: MemberConfig['limits']): ErrorReply | null {
    if (config === null || config.dry_run) return null;
    if (!hasBudget(config.limits) && (member === undefined || !hasBudget(member))) return null;
    const { asked, names, odd } = this.#estimate.tiers;
    const budget = `the group ${group} has a budget`;
    if (odd !== null) {
      const { field, why } = odd;
      const message = `The field ${field} could not be read: it ${why}. It changes the price of the call, and ${budget}. Send it once, as a string, under its documented name.`;
      return { reason: 'price_unknown', message };
    }
    const field = unknownTier(this.#tierPrices, asked);
    if (field === null) return null;
    const tier = JSON.stringify(asked[field]);
    const message = `The call asks for the tier ${tier} in ${names[field]}, whose price at ${this.#upstream.id} is not known, and ${budget}. Remove ${names[field]}, or ask the operator to set the tier in prices.MODEL.tiers of the upstream.`;
    return { reason: 'price_unknown', message };
  }

  /**
   * Decodes an answer from which the usage is removed that the caller did not ask for. Such calls ask for plain bytes, but a
   * proxy on the way may compress them in spite of that.
   */
  withoutPacking(answer: Response): Response {
    if (!this.#removesFrom(answer)) return answer;
    const { status, statusText, body } = answer;
    const encoding = answer.headers.get('content-encoding');
    if (isPlain(encoding) || body === null) return answer;
    const packings = packingsOf(encoding);
    if (packings === null) {
      unremovable.add(this.#upstream.id);
      logEvent('usage_not_removed', {
        upstream: this.#upstream.id,
        encoding: (encoding ?? '').slice(0, LOGGED_CHARS_MAX),
      });
      return answer;
    }
    const headers = new Headers(answer.headers);
    headers.delete('content-encoding');
    headers.delete('content-length');
    // The pipes behind it read bytes into a buffer of their own, which only native streams allow.
    const { readable, writable } = new IdentityTransformStream();
    // If it fails, so does its reader.
    unpacked(body, packings)
      .pipeTo(writable)
      .catch(() => undefined);
    return new Response(readable, { status, statusText, headers });
  }

  /** Whether the answer may hold usage that the caller did not ask for. JSON of a known length is no stream, whatever was asked. */
  #removesFrom(answer: Response): boolean {
    if (!this.#hasAsked || !answer.ok) return false;
    const { headers } = answer;
    const isJson = mediaType(headers.get('content-type')) === 'application/json';
    return !(isJson && headers.has('content-length'));
  }

  /** Reads the usage of an answer on its way through; null: nothing can be read in it. */
  meterFor({ headers }: Response): UsageMeter | null {
    this.#reported = tiersInAnswer(headers);
    return createUsageMeter(
      this.#shape,
      headers.get('content-type'),
      headers.get('content-encoding'),
    );
  }

  /** Leads an answer through the meter; null: it need not be looked into. */
  pipeFor(meter: UsageMeter | null, answer: Response): PipeMetering | null {
    const isReadable = isPlain(answer.headers.get('content-encoding'));
    const filter = this.#removesFrom(answer) && isReadable ? createUsageDrop() : null;
    if (meter === null && filter === null) return null;
    return { meter: meter ?? NO_METER, filter };
  }

  /** Settles what the call has used by now. Undefined: it cannot be told, so what was reserved counts. */
  settlement(meter: Pick<UsageMeter, 'end' | 'isLost'> | null): Settle | undefined {
    if (meter === null) return undefined;
    const { usage, outputTokensSeen, tiers } = meter.end();
    if (meter.isLost === true && usage === null) return undefined;
    const factor = this.#factorFor({ ...this.#reported, ...tiers });
    const billed = {
      inputTokens: this.#inputTokens,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      ...usage,
      outputTokens: outputTokensSeen,
    };
    const counted = countedTokens(this.#profile, billed);
    // Where the provider gives nothing back, what it set aside at the start counts.
    const keptTokens = this.#profile.refundsUnused ? 0 : (this.#maxOutputTokens ?? 0);
    const { inputTokens } = counted;
    const outputTokens = Math.max(counted.outputTokens, keptTokens);
    const { inputTokens: seenInput } = billed;
    const seen = usage === null ? null : { inputTokens: seenInput, outputTokens: outputTokensSeen };
    return ({ config }): Settlement => {
      const price = this.#priceFor(config);
      const usd = price === null ? 0 : costUsd(price, billed) * factor;
      return {
        requests: 1,
        inputTokens,
        outputTokens,
        usd,
        seen,
        cachedTokens: billed.cacheReadTokens,
        isUnpriced: price === null,
      };
    };
  }

  /** Settles a call that its upstream refused, or answered with an error. */
  readonly notServed: Settle = () => {
    const requests = this.#profile.failedCount ? 1 : 0;
    return { requests, inputTokens: 0, outputTokens: 0, usd: 0, seen: null };
  };

  /** The multiple of the price that the call costs, by the tiers that its answer reports, or else by the requested ones. */
  #factorFor(reported: ServiceTiers): number {
    const { asked, odd, isUnread } = this.#estimate.tiers;
    return tierFactor(this.#tierPrices, { ...asked, ...reported }, isUnread || odd !== null);
  }

  #priceFor(config: GroupConfig | null): Price | null {
    const fallback = config === null ? null : fallbackOf(config);
    return this.#price ?? fallback ?? (isFree(this.#upstream) ? FREE : null);
  }
}
