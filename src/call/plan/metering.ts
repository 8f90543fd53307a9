import { mediaType } from '../../runtime/header-value.ts';
import type { GroupConfig } from '../../contract/config/config.ts';
import type { MemberConfig } from '../../contract/config/members.ts';
import {
  aliasedModel,
  fallbackOf,
  FREE,
  hasBudget,
  isFree,
  priceAt,
} from '../../routing/group-limits.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import type { CallEstimate, Settlement, TokenPrices } from '../../core/words/ticket.ts';
import type { Placement } from '../../routing/placement.ts';
import { countedTokens, limitProfileFor } from '../../providers/limits.ts';
import type { LimitProfile } from '../../providers/provider.ts';
import { costUsd, tierListOf, type Price } from '../../providers/prices/price-table.ts';
import {
  tierFactor,
  tiersInAnswer,
  unknownTier,
  withTierHeaders,
  type TierPrices,
} from '../../providers/prices/tiers.ts';
import { logEvent } from '../../runtime/log.ts';
import { isPlain, packingsOf, unpacked } from '../../upstream/body/packing.ts';
import {
  estimateBody,
  type BodyCallEstimate as BodyEstimate,
} from '../../upstream/usage/estimate.ts';
import { injectUsage } from '../../upstream/usage/inject-usage.ts';
import type { PipeMetering } from '../../upstream/transfer/watched-pipe.ts';
import { NO_TIERS, type ServiceTiers } from '../../upstream/usage/tiers.ts';
import { createUsageDrop } from '../../upstream/usage/usage-drop.ts';
import {
  createUsageMeter,
  TEXT_BYTES_PER_TOKEN,
  type UsageMeter,
} from '../../upstream/usage/usage-meter.ts';
import { LEFT, rejected, type Settle, type CallerLeft, type Rejected } from '../results/result.ts';
import type { AuthenticatedCall } from '../request/call.ts';
import type { Located } from '../request/locate.ts';

/** Maximum size of a body that is read for its estimate. A larger one is estimated by its length alone. */
export const READ_BYTES_MAX = 4_194_304;

/** Assumed size of a body of unknown length, so that it does not slip past a limit: 16,000 tokens. */
const UNKNOWN_BYTES = 65_536;

const TOKENS_PER_PRICE = 1_000_000;

/** A call whose tokens or cost a group counts. Its body is read as far as that needs. */
interface MeasuredCall {
  readonly kind: 'measured';
  readonly metering: Metering;
}

/** Measures a call by the numbers that its caller reports, for calls that are not sent through Headgate. */
export function measureAsReported(
  located: Located,
  reported: { readonly inputTokens: number | null; readonly outputTokens: number | null },
): Metering {
  return new Metering(located, {
    inputTokens: reported.inputTokens ?? UNKNOWN_BYTES / TEXT_BYTES_PER_TOKEN,
    isInputGuess: reported.inputTokens === null,
    maxOutputTokens: reported.outputTokens,
    isStream: false,
    wantsUsage: false,
    tiers: NO_TIERS,
  });
}

/** Reads the expected usage from the body of a call. Rejects the call if the remaining body may not be sent. */
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

export type UseEstimator = Pick<Metering, 'estimateFor' | 'rejectUnpriced' | 'rejectTier'>;

interface MeteredMember {
  readonly id: string;
  readonly located: Located;
  readonly member: { readonly config: MemberConfig };
}

/**
 * The prices of a call at each member, and one price for all. If they differ, that one is the highest, for pools that
 * do not know the member.
 */
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

/** For answers without readable usage, from which usage may still have to be removed. */
const NO_METER: Pick<UsageMeter, 'push'> = { push: () => {} };

type EstimatedUse = Omit<BodyEstimate, 'leastInputTokens'> &
  Pick<CallEstimate, 'isInputGuess' | 'leastInputTokens'>;

/**
 * Upstreams of this isolate that compressed a stream in a coding that cannot be undone, although plain bytes were
 * requested. Headgate no longer requests usage from their streams on the caller's behalf.
 */
const unremovable = new Set<string>();

const LOGGED_CHARS_MAX = 100;

/** The usage of one call before, during and after it, as each of its groups counts it. */
export class Metering {
  /** Whether usage is requested on the caller's behalf, as far as the body permits. */
  readonly #asksUsage: boolean;
  /** Whether the body that was sent requests usage on the caller's behalf. */
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
  #reported: ServiceTiers = {};

  /** @param fallback price of a model without one, which precedes that of a group */
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

  /** Measures the same call at a member of its group, which may have its own prices. */
  at({ located, member }: MeteredMember): Metering {
    return new Metering(located, this.#estimate, fallbackOf(member.config));
  }

  /** Estimates a call whose member, and so its price, is not known yet. */
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
   * Makes the body to send if usage is requested on the caller's behalf. Returns null to send the original. The
   * original stays unchanged, so that a second attempt can still see that the caller did not request usage. The copy is
   * made when it is sent, because a call may be queued for long.
   */
  readonly asking = (bytes: Uint8Array): Uint8Array | null => {
    const asking = this.#asksUsage ? injectUsage(bytes) : null;
    this.#hasAsked = asking !== null;
    return asking;
  };

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

  /** The error reply to a call of a group with a budget if the price of its model is unknown. null if it is known. */
  rejectUnpriced(placement: Placement): ErrorReply | null {
    return this.#rejectPrice(placement) ?? this.rejectTier(placement);
  }

  #rejectPrice({ config, group }: Placement): ErrorReply | null {
    if (config === null || config.dry_run || !hasBudget(config.limits)) return null;
    if (this.#priceFor(config) !== null) return null;
    const model =
      this.#model === null
        ? 'This call names no model'
        : `The price of model \`${this.#model}\` at upstream \`${this.#upstream.id}\` is unknown`;
    const message = `${model}, and group \`${group}\` has a budget. Set \`prices\` for the upstream, or \`limits.budget_usd.fallback_price\` for the group.`;
    return { reason: 'price_unknown', message };
  }

  /**
   * The error reply to a call of a group with a budget if the price of its tier is unknown. null if it is known.
   * `member` is the limits of the member at which it may run.
   */
  rejectTier({ config, group }: Placement, member?: MemberConfig['limits']): ErrorReply | null {
    if (config === null || config.dry_run) return null;
    if (!hasBudget(config.limits) && (member === undefined || !hasBudget(member))) return null;
    const { asked, names, odd } = this.#estimate.tiers;
    const budget = `group \`${group}\` has a budget`;
    if (odd !== null) {
      const { field, why } = odd;
      const message = `Field \`${field}\` could not be read: it ${why}. It changes the price of the call, and ${budget}. Send it once, as a string, under its documented name.`;
      return { reason: 'price_unknown', message };
    }
    const field = unknownTier(this.#tierPrices, asked);
    if (field === null) return null;
    const tier = JSON.stringify(asked[field]);
    const message = `This call requests tier ${tier} in \`${names[field]}\`. Its price at upstream \`${this.#upstream.id}\` is unknown, and ${budget}. Remove \`${names[field]}\`, or ask the operator to set the tier in \`prices.MODEL.tiers\` of the upstream.`;
    return { reason: 'price_unknown', message };
  }

  /**
   * Decodes an answer that contains usage to remove. Such calls request plain bytes, but an intermediate proxy may
   * still compress them.
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
    // The pipes behind it read into a buffer of their own, which only native streams allow.
    const { readable, writable } = new IdentityTransformStream();
    // If it fails, its reader fails too.
    unpacked(body, packings)
      .pipeTo(writable)
      .catch(() => undefined);
    return new Response(readable, { status, statusText, headers });
  }

  /** Whether the answer may contain usage that the caller did not request. JSON of a known length is not a stream. */
  #removesFrom(answer: Response): boolean {
    if (!this.#hasAsked || !answer.ok) return false;
    const { headers } = answer;
    const isJson = mediaType(headers.get('content-type')) === 'application/json';
    return !(isJson && headers.has('content-length'));
  }

  /** Reads the usage of an answer in transit. null if none can be read. */
  meterFor({ headers }: Response): UsageMeter | null {
    this.#reported = tiersInAnswer(headers);
    return createUsageMeter(
      this.#shape,
      headers.get('content-type'),
      headers.get('content-encoding'),
    );
  }

  /** Passes an answer through the meter. null if it need not be read. */
  pipeFor(meter: UsageMeter | null, answer: Response): PipeMetering | null {
    const isReadable = isPlain(answer.headers.get('content-encoding'));
    const filter = this.#removesFrom(answer) && isReadable ? createUsageDrop() : null;
    if (meter === null && filter === null) return null;
    return { meter: meter ?? NO_METER, filter };
  }

  /** Settles what the call has used. Undefined if that is unknown, so that the reservation counts. */
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
    // A provider without refunds counts what it reserved at the start.
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

  /** The factor on the price, by the tiers that the answer reports, or otherwise by the requested ones. */
  #factorFor(reported: ServiceTiers): number {
    const { asked, odd, isUnread } = this.#estimate.tiers;
    return tierFactor(this.#tierPrices, { ...asked, ...reported }, isUnread || odd !== null);
  }

  #priceFor(config: GroupConfig | null): Price | null {
    const fallback = config === null ? null : fallbackOf(config);
    return this.#price ?? fallback ?? (isFree(this.#upstream) ? FREE : null);
  }
}
