import type { RefusalKind } from '../../core/words/signal.ts';

/** Whom a refusal is about: calls of the same model, or every call to that upstream or account. */
export type RefusalScope = 'model' | 'upstream';

/** One line of the table. It holds where the provider fits and any one of the tests is true. */
export interface RefusalRow {
  readonly kind: RefusalKind;
  readonly scope: RefusalScope;
  readonly statuses?: readonly number[];
  /** Compared with the parsed code, type and status fields, in lower case. */
  readonly codes?: readonly string[];
  /** Searched in the messages, in lower case. */
  readonly text?: RegExp;
  /** Searched in the names of Google's quotas, in lower case. */
  readonly quotaId?: RegExp;
  /** A header that says 0 on the refusal. */
  readonly zeroHeader?: string;
  /** Providers that the row is for, as `providerOf` names them. Their codes are mere numbers to others. */
  readonly only?: readonly string[];
  readonly except?: readonly string[];
  /** Does not hold where Google names the quotas, which say it better. */
  readonly unlessQuotaFailure?: boolean;
  /** Holds for 400 and 403 too, with which most providers mean something else. */
  readonly onClientError?: boolean;
}

const ZAI = ['zai', 'zhipu'];
const MINIMAX = ['minimax', 'minimax-cn'];
const DASHSCOPE = ['dashscope', 'dashscope-coding', 'dashscope-intl'];
const GOOGLE = ['gemini', 'vertex'];
const MOONSHOT = ['moonshot', 'moonshot-cn', 'kimi-code'];

/**
 * Providers that tell a refusal inside a 200, in a small JSON body: MiniMax's native routes always do
 * (platform.minimax.io, error codes), Z.ai was seen to do it once (2026-11-20).
 */
export const REFUSES_INSIDE_200: ReadonlySet<string> = new Set([...ZAI, ...MINIMAX]);

/** A JSON body of a 200 that is longer is an answer, whoever it came from. */
export const REFUSAL_INSIDE_200_BYTES_MAX = 2_048;

/**
 * Providers that count calls and tokens over all models of an account, so that what one model met
 * holds for the others. Moonshot: platform.moonshot.ai/docs/pricing/limits, by organization.
 * Ollama's cloud: by plan. As of 2026-11-20.
 */
export const COUNTS_BY_ACCOUNT: ReadonlySet<string> = new Set([...MOONSHOT, 'ollama']);

const OUT_OF_MONEY: readonly RefusalRow[] = [
  {
    // OpenRouter holds back the price of `max_tokens`; a shorter call may still go through. Seen 2026-08-24.
    kind: 'never_fits',
    scope: 'model',
    only: ['openrouter'],
    text: /fewer max_tokens.{0,80}can only afford [1-9]|prompt tokens limit exceeded/,
  },
  { kind: 'quota', scope: 'upstream', statuses: [402] },
  {
    kind: 'quota',
    scope: 'upstream',
    except: DASHSCOPE, // There it means tokens per minute.
    codes: ['insufficient_quota'],
    onClientError: true,
  },
  {
    // OpenAI's four, Anthropic's three (some of them with 400), Moonshot's, DashScope's two.
    kind: 'quota',
    scope: 'upstream',
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
    ],
    onClientError: true,
  },
  // In arrears; account locked; plan at its end.
  { kind: 'quota', scope: 'upstream', only: ZAI, codes: ['1113', '1112', '1121', '1309'] },
  { kind: 'quota', scope: 'model', only: ZAI, codes: ['1311'] }, // Not in the plan.
  { kind: 'quota', scope: 'upstream', only: MINIMAX, codes: ['1008'] },
  {
    kind: 'quota',
    scope: 'upstream',
    only: ['anthropic'],
    text: /^your credit balance is too low/,
    onClientError: true,
  },
  { kind: 'quota', scope: 'upstream', text: /insufficient balance|credit balance/ },
  { kind: 'quota', scope: 'model', only: DASHSCOPE, text: /free allocated quota exceeded/ },
  {
    kind: 'quota',
    scope: 'upstream',
    except: DASHSCOPE,
    text: /exceeded your current quota/,
    unlessQuotaFailure: true,
  },
  // The plan does not have the model at all. Gemini as seen 2026-01-16, Mistral 2026-11-20.
  {
    kind: 'quota',
    scope: 'model',
    only: GOOGLE,
    text: /quota exceeded for metric: [^\s,]{1,200}, limit: 0\b(?!\.)/,
  },
  { kind: 'quota', scope: 'model', only: ['mistral'], zeroHeader: 'x-ratelimit-limit-req-minute' },
];

const TOO_LARGE: readonly RefusalRow[] = [
  { kind: 'never_fits', scope: 'model', statuses: [413], text: /request too large/ },
];

const LONG_WINDOWS: readonly RefusalRow[] = [
  {
    // Windows of hours, weeks and months of a plan; 1313 lasts until somebody applies for its end.
    kind: 'long_window',
    scope: 'upstream',
    only: ZAI,
    codes: ['1308', '1310', '1313', '1316', '1317', '1318', '1319', '1320', '1321'],
  },
  { kind: 'long_window', scope: 'model', only: ZAI, codes: ['1304'] },
  { kind: 'long_window', scope: 'upstream', only: MINIMAX, codes: ['2056', '2062'] },
  { kind: 'long_window', scope: 'upstream', only: ['workers-ai'], codes: ['3036', '4006'] },
  { kind: 'long_window', scope: 'model', only: GOOGLE, codes: ['quota_exceeded'] },
  {
    kind: 'long_window',
    scope: 'model',
    quotaId: /perday|per_day/,
    text: /(?:per[ _-]?|calls ?\/ ?)(?:day|week|month)|\b(?:tpd|rpd|limit_rpd|limit_tpd)\b|(?:daily|weekly|monthly) (?:\w{1,20} )?(?:limit|quota)|usage limit/,
  },
];

const CONCURRENCY: readonly RefusalRow[] = [
  { kind: 'concurrency', scope: 'model', only: ZAI, codes: ['1302'] },
  { kind: 'concurrency', scope: 'model', only: MINIMAX, codes: ['1041'] },
  // With 503: anthropics/claude-code#562.
  { kind: 'concurrency', scope: 'model', only: ['bedrock'], text: /too many connections/ },
  // The only limit that it has: api-docs.deepseek.com/quick_start/rate_limit, as of 2026-11-20.
  { kind: 'concurrency', scope: 'model', only: ['deepseek'], statuses: [429] },
  {
    kind: 'concurrency',
    scope: 'model',
    codes: ['concurrent_budget_exceeded', 'too_many_concurrent_requests'],
    text: /concurren/,
  },
];

const OVERLOAD: readonly RefusalRow[] = [
  { kind: 'overload', scope: 'upstream', statuses: [529] },
  { kind: 'overload', scope: 'upstream', text: /maximum pending requests exceeded/ }, // Ollama's queue.
  { kind: 'overload', scope: 'model', only: ZAI, codes: ['1305', '1312'] },
  { kind: 'overload', scope: 'model', only: ['workers-ai'], codes: ['3040'] },
  { kind: 'overload', scope: 'model', only: ['mistral'], codes: ['3505'] },
  {
    kind: 'overload',
    scope: 'model',
    only: GOOGLE,
    text: /resource (?:has been )?exhausted|exceeded the provisioned throughput/,
    unlessQuotaFailure: true,
  },
  {
    kind: 'overload',
    scope: 'model',
    statuses: [498, 503], // 498: Groq's flex tier has no capacity.
    codes: [
      'overloaded_error',
      'engine_overloaded_error',
      'server_is_overloaded',
      'queue_exceeded',
      'model_capacity_exhausted',
      'service_tier_capacity_exceeded',
      'openrouter_shared_capacity',
      'upstream_provider_shared_pool',
      'modelnotreadyexception',
    ],
    text: /overloaded|service tier capacity|high traffic|resource unavailable|out of capacity|访问量过大/,
  },
];

/** Before the rates, whose words its messages may hold too. */
const RAMP: readonly RefusalRow[] = [
  { kind: 'ramp', scope: 'model', only: MINIMAX, codes: ['2045'] },
  {
    kind: 'ramp',
    scope: 'model',
    codes: ['slow_down', 'ramp_limit_exceeded', 'limit_burst_rate', 'throttling.burstrate'],
    text: /increased too quickly|acceleration limit/,
  },
];

const RATES: readonly RefusalRow[] = [
  { kind: 'tokens', scope: 'model', only: MINIMAX, codes: ['1039'] },
  {
    kind: 'tokens',
    scope: 'model',
    only: DASHSCOPE,
    codes: ['throttling.allocationquota', 'insufficient_quota'],
    text: /allocated quota exceeded|exceeded your current quota/,
  },
  {
    kind: 'tokens',
    scope: 'model',
    codes: ['tokens', 'token_quota_exceeded'],
    quotaId: /tokens|token_count/,
    text: /\b(?:tpm|limit_tpm)\b|tokens?[ _]per[ _]min|token rate limit|too many tokens/,
  },
  { kind: 'requests', scope: 'model', only: ZAI, codes: ['1303'] },
  { kind: 'requests', scope: 'model', only: MINIMAX, codes: ['1002'] },
  { kind: 'requests', scope: 'model', only: ['bedrock'], text: /too many requests/ },
  {
    kind: 'requests',
    scope: 'model',
    codes: ['requests', 'request_quota_exceeded', 'throttling.ratequota', 'limit_requests'],
    quotaId: /requests/,
    text: /\b(?:rpm|rps|limit_rpm)\b|requests?[ _]per[ _](?:min|sec)|per[ -]minute request|calls ?\/ ?min|call rate limit|requests rate limit|current requests list/,
  },
];

const THE_REST: readonly RefusalRow[] = [
  // Unknown, timeout, internal, system: told inside a 200.
  { kind: 'error', scope: 'model', only: MINIMAX, codes: ['1000', '1001', '1024', '1033'] },
  { kind: 'unknown', scope: 'model', statuses: [429] },
];

/**
 * The table: the first row that holds says what a refusal means. What waiting cannot mend comes first,
 * and a named cause comes before the mere status. Codes and messages as of 2026-11-20, from the
 * providers' error references where they have them, else as clients reported them.
 */
export const REFUSAL_TABLE: readonly RefusalRow[] = [
  ...OUT_OF_MONEY,
  ...TOO_LARGE,
  ...LONG_WINDOWS,
  ...CONCURRENCY,
  ...OVERLOAD,
  ...RAMP,
  ...RATES,
  ...THE_REST,
];
