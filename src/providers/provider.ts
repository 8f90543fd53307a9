import type { SuggestedLimits } from '../contract/admin/suggestion-schemas.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { HeaderProfile } from '../upstream/refusal/header-families.ts';
import type { RefusalQuirks, RefusalRow } from '../upstream/refusal/refusal-table.ts';
import type { PriceList } from './prices/price-list.ts';
import type { TierList } from './prices/lists/tiers.ts';

/** Systems whose configurations are imported and that have names of their own for providers. */
export type NamingSystem = 'clawith' | 'hermes' | 'picoclaw' | 'portkey';

/** Names of a place, by the system that has them. */
export type NamesBySystem = Readonly<Partial<Record<NamingSystem, readonly string[]>>>;

/**
 * One provider, with only what differs from the defaults of its dialect and from what all providers do.
 * Everything that Headgate knows of it by name stands in one file that `satisfies` this type, and nowhere
 * else; `all.ts` lists the files.
 */
export interface Provider {
  /** The id of its built-in upstream, and what an upstream at a host that nobody knows is compared with. */
  readonly id: string;
  /** Names that other systems give it, in lower case. */
  readonly aliases?: readonly string[];
  /** Names that one other system gives it, in lower case, where the same name means another host elsewhere. */
  readonly namedBy?: NamesBySystem;
  /** Globs of base URLs where each account has its own, for groups that are to have all of them. */
  readonly hostGlobs?: readonly string[];
  /** Beginnings of its keys, in lower case, by which a key is told that stands where none belongs. */
  readonly keyPrefixes?: readonly string[];
  /**
   * Scheme and host only: whatever path an SDK appends to its base URL then stands unchanged behind the
   * upstream's id. Null: each account or region has its own, so the upstream comes in by configuration.
   */
  readonly baseUrl: string | null;
  /** Hosts besides that of the base URL, in lower case. */
  readonly hosts?: RegExp;
  /** @default 'openai' */
  readonly dialect?: Dialect;
  /**
   * Where the OpenAI-shaped routes begin. Null: they lie under a path that differs by account.
   * @default the dialect's usual path
   */
  readonly openaiAt?: string | null;
  /** @default none, but for the dialect `anthropic` */
  readonly anthropicAt?: string;
  /**
   * Globs in lower case, only where a model's name alone tells its vendor. Resellers have none, and of
   * a vendor's several hosts one has them: two upstreams that match make a call ambiguous.
   */
  readonly models?: readonly string[];
  /**
   * Whether a key names its account for good. False: callers hold short-lived OAuth tokens, which are
   * bearer tokens whatever the dialect, and project and location stand in the path.
   * @default true
   */
  readonly keyNamesAccount?: boolean;
  /**
   * True: it serves Responses over WebSocket, where each `response.create` is a call of its own.
   * @default false
   */
  readonly speaksTurns?: boolean;
  /** Signs by which the account of a key is told that does not last. Absent: each key stands for itself. */
  readonly account?: AccountSigns;
  /**
   * Whether every upstream of the dialect that is called like the provider counts and charges as it does,
   * since its operators choose ids and hosts.
   * @default false
   */
  readonly isKnownByDialect?: boolean;
  /** Words of a call for the account, or the part of one, that it is for, among those that its key may use. */
  readonly accountSelectors?: AccountSelectors;
  /** Headers that steer it: routes, retries, caches, capacity. */
  readonly steering?: Steering;
  /** Its limits of calls at once, before anybody configured one. */
  readonly limits?: readonly PublishedLimit[];
  /** Limits that it publishes of its plans, or tiers: suggestions, which nothing applies by itself. */
  readonly plans?: readonly PublishedPlan[];
  /**
   * The rate-limit headers that it sends. Absent: it sends none, or nobody has described them.
   */
  readonly limitHeaders?: HeaderProfile;
  /** The header of its answers, in lower case, that names the call where `x-request-id` and `request-id` do not. */
  readonly requestId?: RequestIdHeader;
  /** Its ways to refuse, in the order in which the rows of one stage are compared. */
  readonly refusals?: readonly RefusalRow[];
  readonly quirks?: RefusalQuirks;
  /** Its ways of counting calls and tokens. Later rows lie on earlier ones. */
  readonly counts?: readonly CountingRow[];
  readonly prices?: PriceList;
  /** Its tiers of service, as multiples of these prices. */
  readonly tiers?: TierList;
}

/** A header that names a call as the provider's support finds it. */
interface RequestIdHeader {
  readonly header: string;
  readonly source: string;
  /** When it was last known to hold, as `YYYY-MM-DD`. */
  readonly date: string;
}

/** A concurrency limit that a provider is known to keep. */
export interface PublishedLimit {
  /** In lower case. Empty: the limit holds for the whole upstream. */
  readonly modelPrefix: string;
  /** Former names of the same models, which count against the same limit. In lower case. */
  readonly formerPrefixes?: readonly string[];
  /**
   * Where the figure differs by plan, the smallest: it is a starting point that an operator overrides with
   * a group, and too low costs a wait where too high costs refusals. A request rate is no concurrency.
   */
  readonly maxConcurrency: number;
  /** Where the figure was published or seen. */
  readonly source: string;
  /** When it was last known to hold, as `YYYY-MM-DD`; the first of a month or year where no day is known. */
  readonly date: string;
  readonly note?: string;
}

/** The limits that a provider publishes of one of its plans, or tiers. */
interface PublishedPlan {
  /** Its name in the provider's words, as in `Tier 1`. */
  readonly plan: string;
  /** Globs of the models that they are about, each by itself, in lower case. Absent: all models. */
  readonly models?: readonly string[];
  /** By the names that a group's configuration has for them. */
  readonly limits: SuggestedLimits;
  /** Where the figures were published or copied. */
  readonly source: string;
  /** When they were last known to hold, as `YYYY-MM-DD`; the first of a month or year where no day is known. */
  readonly date: string;
  readonly note?: string;
}

/** A way of counting calls and tokens against its limits per minute and day. */
export interface LimitProfile {
  /**
   * The part of the output that counts before it is written.
   * - `max_tokens`: the most that the call may write, as the provider does it.
   * - `mean`: nothing; it counts as it is written, so what calls write on the average is set aside.
   * - `none`: output never counts.
   */
  readonly reserveOutput: 'max_tokens' | 'mean' | 'none';
  /** Whether input that was read from a cache counts. */
  readonly countsCacheReads: boolean;
  /** Times that a token of output counts once it is written. What is reserved before counts once. */
  readonly outputWeight: number;
  /** Whether a call that the provider refused counts as a request. */
  readonly failedCount: boolean;
  /** Whether what was reserved and not used is given back when the call ends. */
  readonly refundsUnused: boolean;
}

/** A provider's way of counting, as far as it is known to differ from the default. */
export interface CountingRow {
  /** Beginnings of models' names, in lower case. Absent: all models. */
  readonly models?: readonly string[];
  readonly counts: Partial<LimitProfile>;
  readonly source: string;
  /** When it was last known to hold, as `YYYY-MM-DD`. */
  readonly date: string;
  readonly note?: string;
}

/**
 * A provider's own words for whose a short-lived key is. They must be its own: a claim that it signs, or an answer that it
 * gives to a key which it took.
 */
export interface AccountSigns {
  /**
   * Paths to the claims that name the account together, in a key that is a JSON Web Token. The first must be there, or the
   * key is none of these.
   */
  readonly claims?: readonly (readonly string[])[];
  /** The header of its answers that names the account, in lower case, of keys that begin so. */
  readonly answers?: { readonly header: string; readonly keyPrefix: string };
  readonly source: string;
  /** When it was last known to hold, as `YYYY-MM-DD`. */
  readonly date: string;
  readonly note?: string;
}

/**
 * Headers that steer a gateway or a provider: they choose routes, keys, retries, capacity, or the account that pays.
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

/** Names in lower case under which a call says whose account it is for. */
interface AccountSelectors {
  readonly headers: readonly string[];
  /** Parameters of the query. */
  readonly parameters?: readonly string[];
  readonly source: string;
  /** When they were last verified, as `YYYY-MM-DD`. */
  readonly date: string;
}
