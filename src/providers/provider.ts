import type { SuggestedLimits } from '../contract/shared-shapes.ts';
import type { Dialect } from '../contract/http.ts';
import type { HeaderProfile } from '../upstream/refusal/limit-headers.ts';
import type { RefusalQuirks, RefusalRow } from '../upstream/refusal/refusal-table.ts';
import type { TierList } from './prices/tiers.ts';

/** Systems whose configurations can be imported, and that have their own names for providers. */
export type NamingSystem = 'clawith' | 'hermes' | 'picoclaw' | 'portkey';

export type NamesBySystem = Readonly<Partial<Record<NamingSystem, readonly string[]>>>;

/**
 * One provider, with only its differences from the defaults of its dialect and from the behavior common to all
 * providers. Everything that Headgate knows about a provider by name is in one file that `satisfies` this type.
 * `all.ts` lists the files.
 */
export interface Provider {
  /** The id of its built-in upstream. An upstream at an unknown host is matched with it by id. */
  readonly id: string;
  /** Names that other systems use for it, in lower case. */
  readonly aliases?: readonly string[];
  /** Names that one other system uses for it, in lower case, if the same name means another host in other systems. */
  readonly namedBy?: NamesBySystem;
  /** Globs of base URLs that differ by account, for groups that should contain all of them. */
  readonly hostGlobs?: readonly string[];
  /** Prefixes of its keys, in lower case. They identify a key in a location where no key belongs. */
  readonly keyPrefixes?: readonly string[];
  /**
   * Scheme and host only, so that the path that an SDK appends to its base URL follows the upstream's id unchanged. If
   * it is null, each account or region has its own, and the upstream must be configured.
   */
  readonly baseUrl: string | null;
  /** Hosts other than that of the base URL, in lower case. */
  readonly hosts?: RegExp;
  /** @default 'openai' */
  readonly dialect?: Dialect;
  /**
   * Path of the OpenAI-shaped routes. null if it differs by account.
   * @default the dialect's usual path
   */
  readonly openaiAt?: string | null;
  /** @default none, except for the dialect `anthropic` */
  readonly anthropicAt?: string;
  /**
   * Globs in lower case, only if a model name alone identifies its vendor. Resellers have none. If a vendor has several
   * hosts, only one has them, because two matching upstreams make a call ambiguous.
   */
  readonly models?: readonly string[];
  /**
   * Whether a key permanently identifies its account. false if callers have short-lived OAuth tokens, which are bearer
   * tokens in any dialect, and the path contains project and location.
   * @default true
   */
  readonly keyNamesAccount?: boolean;
  /**
   * Whether it serves the Responses API over WebSocket, where each `response.create` is a call of its own.
   * @default false
   */
  readonly speaksTurns?: boolean;
  /** How to identify the account of a short-lived key. Absent if each key counts as an account of its own. */
  readonly account?: AccountSigns;
  /**
   * Whether every upstream with a dialect of the same name as the provider counts and charges like it, because
   * operators choose ids and hosts.
   * @default false
   */
  readonly isKnownByDialect?: boolean;
  /** Fields of a call that select an account, or a part of one, among those that its key may use. */
  readonly accountSelectors?: AccountSelectors;
  /** Headers that control it: routes, retries, caches, capacity. */
  readonly steering?: Steering;
  /** Its limits of concurrent calls, used until an operator configures one. */
  readonly limits?: readonly PublishedLimit[];
  /** Limits that it publishes for its plans or tiers. They are suggestions, and are never applied automatically. */
  readonly plans?: readonly PublishedPlan[];
  /** The rate-limit headers that it sends. Absent if it sends none, or they are undocumented. */
  readonly limitHeaders?: HeaderProfile;
  /** The response header that identifies the call, in lower case, if it is neither `x-request-id` nor `request-id`. */
  readonly requestId?: RequestIdHeader;
  /** Its refusals, in the order in which the rows of one stage are compared. */
  readonly refusals?: readonly RefusalRow[];
  readonly quirks?: RefusalQuirks;
  /** How it counts calls and tokens. Later rows override earlier ones. */
  readonly counts?: readonly CountingRow[];
  /** Its name at https://models.dev, for `npm run build:prices`. Absent if no prices are listed there. */
  readonly pricedAs?: string;
  /** Its service tiers, as multiples of these prices. */
  readonly tiers?: TierList;
}

/** A header that identifies a call for the provider's support. */
interface RequestIdHeader {
  readonly header: string;
  readonly source: string;
  /** When it was last verified, as `YYYY-MM-DD`. */
  readonly date: string;
}

/** A known concurrency limit of a provider. */
export interface PublishedLimit {
  /** In lower case. Empty if the limit applies to the whole upstream. */
  readonly modelPrefix: string;
  /** Former names of the same models, which count against the same limit. In lower case. */
  readonly formerPrefixes?: readonly string[];
  /**
   * If it differs by plan, the smallest. It is a starting point that an operator overrides with a group. A limit that
   * is too low costs waits, and one that is too high costs refusals. A request rate is not a concurrency limit.
   */
  readonly maxConcurrency: number;
  /** Where the number was published or seen. */
  readonly source: string;
  /** When it was last verified, as `YYYY-MM-DD`. The first of a month or year if the day is unknown. */
  readonly date: string;
  readonly note?: string;
}

/** The limits that a provider publishes for one of its plans or tiers. */
interface PublishedPlan {
  /** The provider's name for it, such as `Tier 1`. */
  readonly plan: string;
  /** Globs of the models that the limits apply to, each separately, in lower case. Absent for all models. */
  readonly models?: readonly string[];
  /** Under the names of a group's configuration. */
  readonly limits: SuggestedLimits;
  /** Where the numbers were published or copied. */
  readonly source: string;
  /** When they were last verified, as `YYYY-MM-DD`. The first of a month or year if the day is unknown. */
  readonly date: string;
  readonly note?: string;
}

/** How a provider counts calls and tokens against its limits per minute and day. */
export interface LimitProfile {
  /**
   * How output counts before it is written.
   * - `max_tokens`: the maximum output of the call, as the provider reserves it.
   * - `mean`: the provider counts output as it is written, so the mean output of calls is reserved.
   * - `none`: output never counts.
   */
  readonly reserveOutput: 'max_tokens' | 'mean' | 'none';
  readonly countsCacheReads: boolean;
  /** Weight of a token of output once it is written. Reserved output has the weight 1. */
  readonly outputWeight: number;
  /** Whether a call that the provider refused counts as a request. */
  readonly failedCount: boolean;
  /** Whether unused reservations are refunded when the call ends. */
  readonly refundsUnused: boolean;
}

/** How a provider counts, if it is known to differ from the default. */
export interface CountingRow {
  /** Prefixes of model names, in lower case. Absent for all models. */
  readonly models?: readonly string[];
  readonly counts: Partial<LimitProfile>;
  readonly source: string;
  /** When it was last verified, as `YYYY-MM-DD`. */
  readonly date: string;
  readonly note?: string;
}

/**
 * How a provider identifies the account of a short-lived key. The evidence must come from the provider itself: a claim
 * that it signs, or a response to a key that it accepted.
 */
export interface AccountSigns {
  /**
   * Paths of the claims that together identify the account, in a key that is a JSON Web Token. Without the first one,
   * the key is not such a token.
   */
  readonly claims?: readonly (readonly string[])[];
  /** The response header that identifies the account, in lower case, and the prefix of the keys that it applies to. */
  readonly answers?: { readonly header: string; readonly keyPrefix: string };
  readonly source: string;
  /** When it was last verified, as `YYYY-MM-DD`. */
  readonly date: string;
  readonly note?: string;
}

/**
 * Headers that control a gateway or a provider: they choose routes, keys, retries, capacity, or the account that pays.
 * With the operator's key, only the operator may choose.
 */
export interface Steering {
  /** Names in lower case. */
  readonly headers?: readonly string[];
  /** Prefixes of names in lower case, with or without `x-` before them. */
  readonly starts?: readonly string[];
  readonly source: string;
  /** When they were last verified, as `YYYY-MM-DD`. */
  readonly date: string;
}

/** Names in lower case with which a call selects an account. */
interface AccountSelectors {
  readonly headers: readonly string[];
  /** Query parameters. */
  readonly parameters?: readonly string[];
  readonly source: string;
  /** When they were last verified, as `YYYY-MM-DD`. */
  readonly date: string;
}
