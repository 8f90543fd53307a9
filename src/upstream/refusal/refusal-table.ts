import type { RefusalScope, RefusalKind } from '../../core/words/signal.ts';
import type { WaitHeader } from './refusal-delay.ts';
import { isSentence, isTooLong, TOO_LONG_CODES, type MessageTest } from './refusal-words.ts';

/**
 * Parts of the table, in the order in which they are compared. There is one stage for each kind of refusal, and
 * additional stages for rows that must be compared earlier or later than those of their kind.
 */
const STAGES = [
  'price', // Calls that cost more than the remaining budget, which the signs of an empty account would hide.
  'account', // Signs of an empty account, for all providers.
  'quota',
  'plan', // Models that the account may not use.
  'never_fits',
  'long_window',
  'concurrency',
  'outage', // Overload of the whole upstream.
  'overload',
  'ramp', // Before the rates, because its messages may contain their phrases.
  'tokens',
  'requests',
  'error',
  'unknown',
] as const satisfies readonly (RefusalKind | 'price' | 'account' | 'plan' | 'outage')[];

type RefusalStage = (typeof STAGES)[number];

/** One row of the table. It applies if any of its tests matches. */
export interface RefusalRow {
  /**
   * No row has the kinds `egress` and `unauthorized`. They are recognized by the form of the response, and by whose key
   * it is about.
   */
  readonly kind: Exclude<RefusalKind, 'egress' | 'unauthorized'>;
  readonly scope: RefusalScope;
  /** @default the kind */
  readonly stage?: RefusalStage;
  readonly statuses?: readonly number[];
  /** Compared with the parsed code, type and status fields, in lower case. */
  readonly codes?: readonly string[];
  /** Phrases in messages, in lower case. Ignored for 400, 403 and 412, whose messages repeat what callers wrote. */
  readonly text?: RegExp;
  /** Compared with each message as a whole. */
  readonly message?: MessageTest;
  /** Searched in the names of Google's quotas, in lower case. */
  readonly quotaId?: RegExp;
  /** A header that is 0 in the refusal. */
  readonly zeroHeader?: string;
  /** Ignores the row if Google names the quotas, which are more precise. */
  readonly unlessQuotaFailure?: boolean;
  /**
   * Whether the row also applies to 400, 403 and 412, by a code or a whole message. Most providers use these statuses
   * for other errors.
   */
  readonly onClientError?: boolean;
}

/** Properties of one provider's refusals that no row can express. */
export interface RefusalQuirks {
  /**
   * Whether limits count the calls and tokens of all models of an account, so that a refusal of one model applies to
   * the others.
   */
  readonly countsByAccount?: boolean;
  /** Whether its limit of tokens per minute is reported in the words that others use for an exhausted quota. */
  readonly quotaMeansTokens?: boolean;
  /** Time zone of times in its messages that name none, such as `+08:00`. */
  readonly resetTimesAre?: string;
  /** Finds a code that only occurs in the message, as its first group, in lower case. */
  readonly codesFromMessage?: RegExp;
  /** Headers of a refusal with the end of an exhausted window. */
  readonly waitHeaders?: readonly WaitHeader[];
}

export interface RefusalRules {
  /** Every row, in the order in which they are compared. */
  readonly rows: readonly RefusalRow[];
  readonly quirks: RefusalQuirks;
}

/** Rows that do not apply to a provider with `quotaMeansTokens`. */
const MEANS_QUOTA: readonly RefusalRow[] = [
  {
    kind: 'quota',
    scope: 'upstream',
    stage: 'account',
    codes: ['insufficient_quota'],
    onClientError: true,
  },
  {
    kind: 'quota',
    scope: 'upstream',
    text: /exceeded your current quota/,
    unlessQuotaFailure: true,
  },
];

/**
 * Rows that apply to all providers, because gateways also pass on the errors of others. Codes and messages as of
 * 2026-11-20, from the providers' error references if they have them, and otherwise as reported by clients.
 */
export const COMMON_ROWS: readonly RefusalRow[] = [
  { kind: 'quota', scope: 'upstream', stage: 'account', statuses: [402] },
  ...MEANS_QUOTA,
  {
    // Four of OpenAI, three of Anthropic (some of them with 400), one of Moonshot, two of DashScope.
    kind: 'quota',
    scope: 'upstream',
    stage: 'account',
    codes: [
      'credit_balance_exhausted',
      'organization_spend_limit_exceeded',
      'project_spend_limit_exceeded',
      'organization_usage_limit_exceeded',
      'billing_error',
      'enforced_spend_limit_reached',
      'contract_spend_limit_reached',
      'exceeded_current_quota_error',
      'arrearage',
      'allocationquota.freetieronly',
      // OpenAI for accounts without a budget, and Volcengine.
      'billing_hard_limit_reached',
      'billing_not_active',
      'accountoverdueerror',
    ],
    onClientError: true,
  },
  {
    kind: 'quota',
    scope: 'upstream',
    text: /insufficient (?:account )?balance|balance is insufficient|credit balance|spending cap|credits (?:are|have been) (?:depleted|exhausted)/,
  },
  { kind: 'never_fits', scope: 'call', statuses: [413], text: /request too large/ },
  // Anthropic: the call asks for more than its plan includes. As reported by users of Claude Code, 2026-03.
  {
    kind: 'never_fits',
    scope: 'call',
    text: /\bextra usage is required\b|\brequires extra usage\b|\blong context beta is not (?:yet )?available\b/,
  },
  {
    // More tokens than this model accepts. Another model may accept them.
    kind: 'never_fits',
    scope: 'call',
    codes: TOO_LONG_CODES,
    message: isTooLong,
    onClientError: true,
  },
  {
    kind: 'long_window',
    scope: 'model',
    quotaId: /perday|per_day/,
    text: /(?:per[ _-]?|calls ?\/ ?)day|\b(?:tpd|rpd|limit_rpd|limit_tpd)\b|daily (?:\w{1,20} )?(?:limit|quota)/,
  },
  {
    // A plan, whose windows count the calls of all models.
    kind: 'long_window',
    scope: 'credential',
    // The last ones are Volcengine's.
    codes: ['usage_limit_reached', 'accountquotaexceeded'],
    text: /(?:per[ _-]?|calls ?\/ ?)(?:week|month)|(?:weekly|monthly) (?:\w{1,20} )?(?:limit|quota)|(?<!\bnot your )\busage (?:limit|quota)|\b(?:session|5-hour|five-hour) (?:limit|quota)/,
  },
  {
    // Azure API Management, in front of any provider, with 403.
    kind: 'long_window',
    scope: 'credential',
    message: isSentence(
      /out of (?:call volume|bandwidth) quota\. quota will be replenished in [\d.:]{1,20}\.?/,
      /token quota is exceeded\. try again in [\d.:]{1,20}(?: (?:second|minute|hour|day)s?)?\.?/,
    ),
    onClientError: true,
  },
  {
    // Accounts count concurrent calls over all models, unless a provider's own row says otherwise.
    kind: 'concurrency',
    scope: 'credential',
    codes: ['concurrent_budget_exceeded', 'too_many_concurrent_requests'],
    text: /concurren/,
  },
  { kind: 'overload', scope: 'upstream', stage: 'outage', statuses: [529] },
  {
    // Ollama's queue.
    kind: 'overload',
    scope: 'upstream',
    stage: 'outage',
    text: /maximum pending requests exceeded/,
  },
  {
    // The scope is the tier if the call asks for one, and otherwise its model. 498 means that Groq's flex tier has no
    // capacity.
    kind: 'overload',
    scope: 'tier',
    statuses: [498],
    codes: [
      'service_tier_capacity_exceeded',
      'resource_unavailable',
      'resource_unavailable_error',
      'capacity_exceeded',
    ],
    text: /service tier capacity|\b(?:flex|priority|batch) (?:tier |processing )?(?:capacity|resources)|resources? (?:(?:is|are) )?(?:(?:currently|temporarily) )?unavailable/,
  },
  {
    kind: 'overload',
    scope: 'model',
    statuses: [503],
    codes: [
      'overloaded_error',
      'engine_overloaded_error',
      'server_is_overloaded',
      'queue_exceeded',
      'model_capacity_exhausted',
      'openrouter_shared_capacity',
      'upstream_provider_shared_pool',
      'modelnotreadyexception',
      'engine_overloaded',
      'nocapacity',
      'serveroverloaded',
    ],
    text: /overload(?:ed)?\b|high traffic|experiencing high (?:demand|load)|(?:out of|over|at) capacity|no capacity available|\b(?:too|currently|(?:server|service|system)(?: is)?) busy\b|temporarily limiting requests|访问量过大/,
  },
  {
    kind: 'ramp',
    scope: 'model',
    codes: [
      'slow_down',
      'ramp_limit_exceeded',
      'limit_burst_rate',
      'throttling.burstrate',
      'requestbursttoofast',
    ],
    text: /increased too quickly|acceleration limit/,
  },
  {
    kind: 'tokens',
    scope: 'model',
    codes: ['tokens', 'token_quota_exceeded', 'modelaccounttpmratelimitexceeded'],
    quotaId: /tokens|token_count/,
    text: /\b(?:tpm|limit_tpm)\b|tokens?[ _]per[ _]min|token rate limit|too many tokens/,
  },
  {
    kind: 'requests',
    scope: 'model',
    codes: [
      'requests',
      'request_quota_exceeded',
      'throttling.ratequota',
      'limit_requests',
      'modelaccountrpmratelimitexceeded',
    ],
    quotaId: /requests/,
    text: /\b(?:rpm|rps|qps|limit_rpm)\b|(?:requests?|images?)[ _]per[ _](?:min|sec)|per[ -]minute request|calls ?\/ ?min|call rate limit|requests rate limit|current requests list/,
  },
  { kind: 'unknown', scope: 'model', statuses: [429] },
];

/**
 * Builds the table of one provider. The first row that applies determines the meaning of a refusal. Rows are compared
 * stage by stage, and within a stage the provider's own rows come first. Refusals that waiting cannot resolve come
 * first, and a named cause comes before a mere status.
 */
export function refusalRules(own: readonly RefusalRow[], quirks: RefusalQuirks): RefusalRules {
  const common = quirks.quotaMeansTokens
    ? COMMON_ROWS.filter((row) => !MEANS_QUOTA.includes(row))
    : COMMON_ROWS;
  return { rows: byStage([...own, ...common]), quirks };
}

function byStage(rows: readonly RefusalRow[]): readonly RefusalRow[] {
  const at = ({ kind, stage = kind }: RefusalRow) => STAGES.indexOf(stage);
  return rows.toSorted((a, b) => at(a) - at(b));
}
