import { BoundedMap } from '../../core/parts/bounded-map.ts';
import {
  TIER_FIELDS,
  reportedTier,
  type TierField,
  type RequestedTiers,
  type ServiceTiers,
} from '../../upstream/usage/tiers.ts';

/** Prices of service tiers, and the names under which prices of a model are listed. */

/** A date or a number at the end of a model name, and a version after it. */
const SNAPSHOT = /[-@](?:latest|default|\d{8}|\d{4}-\d{2}-\d{2}|00\d)$/;
const VERSION = /(?:-v1|-v\d+:\d+)$/;

/**
 * Lists the names under which a model's price may be listed, the most specific first. They are the whole name, then the
 * name with one part of its path (`vendor/model`), then without any, because `models/` or `publishers/google/models/`
 * may precede it. Each is also listed without a snapshot suffix: `-2024-08-06`, `@20250929`, `-20250929-v1:0`,
 * `-latest`, `-001`. Any other suffix makes it another model: `gpt-4-32k` and `gpt-4.5` do not cost what `gpt-4` does.
 */
export function listedNames(model: string): readonly string[] {
  let names = known.get(model);
  if (names === undefined) {
    names = namesOf(model);
    known.set(model, names);
  }
  return names;
}

/** Maximum number of models whose names are cached. Each call looks them up several times. */
const KNOWN_MAX = 256;

const known = new BoundedMap<string, readonly string[]>(KNOWN_MAX);

function namesOf(model: string): readonly string[] {
  const whole = model.toLowerCase();
  const segments = whole.split('/');
  // Only parts of the path, because a caller controls their number.
  const paths = [whole, segments.slice(-2).join('/'), segments.slice(-1).join('/')];
  return [...new Set(paths.flatMap(withoutSnapshot))];
}

function withoutSnapshot(name: string): readonly string[] {
  const unversioned = name.replace(VERSION, '');
  return [name, unversioned, unversioned.replace(SNAPSHOT, '')];
}

/**
 * Tiers of a field, and their price as a multiple of the listed price. `tiers` and the prefixes of model names are
 * separated by spaces. Without models, the row applies to all. The first matching row applies.
 */
type TierRow = readonly [field: TierField, tiers: string, factor: number, models?: string];

export interface TierList {
  readonly source: string;
  /** When they were last verified, as `YYYY-MM-DD`. */
  readonly date: string;
  readonly rows: readonly TierRow[];
}

/** OpenAI's tiers, also used by Azure. `fast` is another name of `priority`. Scale units are paid in advance. */
const OPENAI = {
  source: 'https://openai.com/api-fast-mode/',
  date: '2026-11-26',
  rows: [
    ['service_tier', 'scale', 1],
    ['service_tier', 'flex batch', 0.5],
    ['service_tier', 'priority fast', 5 / 3, 'gpt-4o-mini'],
    ['service_tier', 'priority fast', 1.75, 'gpt-4o-2024-05-13'],
    ['service_tier', 'priority fast', 1.7, 'gpt-4o'],
    ['service_tier', 'priority fast', 2, 'gpt-4.1-nano'],
    ['service_tier', 'priority fast', 1.75, 'gpt-4.1 o3'],
    ['service_tier', 'priority fast', 20 / 11, 'o4-mini'],
    ['service_tier', 'priority fast', 1.8, 'gpt-5-mini'],
    ['service_tier', 'priority fast', 2.5, 'gpt-5.5'],
    ['service_tier', 'priority fast', 2, 'gpt-5 gpt-6'],
    // No price is published for other models, so the highest multiple applies.
    ['service_tier', 'priority fast', 2.5],
    // https://developers.openai.com/api/docs/guides/ultrafast-mode
    ['service_tier', 'ultrafast', 6, 'gpt-6'],
  ],
} satisfies TierList;

const GEMINI = {
  source: 'https://docs.llmgateway.io/features/service-tiers',
  date: '2026-11-26',
  rows: [
    ['service_tier', 'flex', 0.5],
    ['service_tier', 'priority', 1.8],
  ],
} satisfies TierList;

/** Prices of tiers, as multiples of the price of the standard tier. */
export const TIERS = {
  openai: OPENAI,
  azure: OPENAI,
  gemini: GEMINI,
  vertex: GEMINI,
  anthropic: {
    source: 'https://platform.claude.com/docs/build-with-claude/fast-mode',
    date: '2026-11-26',
    rows: [
      // Capacity that is paid in advance: https://platform.claude.com/docs/en/api/service-tiers
      ['service_tier', 'priority', 1],
      ['service_tier', 'batch', 0.5],
      ['speed', 'fast', 6, 'claude-opus-4-6 claude-opus-4-7'],
      ['speed', 'fast', 2, 'claude-opus-4-8 claude-opus-5'],
    ],
  },
  bedrock: {
    source: 'https://docs.aws.amazon.com/bedrock/latest/userguide/service-tiers-inference.html',
    date: '2026-11-26',
    // Capacity that is paid in advance. The price of priority is only published by model and region.
    rows: [['service_tier', 'reserved', 1]],
  },
  groq: {
    source: 'https://console.groq.com/docs/service-tiers',
    date: '2026-11-26',
    // Capacity that is paid in advance. Flex costs as much as on_demand.
    rows: [['service_tier', 'performance', 1]],
  },
} satisfies Record<string, TierList>;

const TIER_HEADERS: readonly (readonly [header: string, field: TierField])[] = [
  // https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html, 2026-11-26
  ['x-amzn-bedrock-service-tier', 'service_tier'],
  ['x-amzn-bedrock-performanceconfig-latency', 'latency'],
  // https://docs.cloud.google.com/vertex-ai/generative-ai/docs/priority-paygo, 2026-11-26
  ['x-vertex-ai-llm-shared-request-type', 'service_tier'],
];

/** A header of Vertex that chooses throughput paid in advance (`dedicated`) or the shared quota (`shared`). */
export const REQUEST_TYPE_HEADER = 'x-vertex-ai-llm-request-type';

/** Response headers that report the tier that served the call. */
const REPORTED_TIER_HEADERS: typeof TIER_HEADERS = [
  ...TIER_HEADERS,
  // https://ai.google.dev/gemini-api/docs/priority-inference, 2026-11-26
  ['x-gemini-service-tier', 'service_tier'],
];

/** Tiers that cost at most the listed price at every provider. */
const COMMON: readonly TierRow[] = [
  ['service_tier', 'auto default standard standard_only on_demand flex batch', 1],
  ['speed', 'auto default standard normal', 1],
  ['latency', 'auto standard', 1],
];

export interface TierPrices {
  readonly list: TierList | null;
  readonly model: string | null;
  /** Factors set by an operator, by tier. They take precedence over the list. */
  readonly own: Readonly<Record<string, number>>;
}

/** Finds the first tier whose price is unknown. Returns null if all are known. */
export function unknownTier(prices: TierPrices, tiers: ServiceTiers): TierField | null {
  return (
    TIER_FIELDS.find((field) => {
      const tier = tiers[field];
      return tier !== undefined && factorOf(prices, field, tier) === null;
    }) ?? null
  );
}

/**
 * Computes the multiple of the listed price that a call costs. A tier of unknown price counts as the most expensive
 * known one. `mayAskAny` treats absent fields in the same way.
 */
export function tierFactor(prices: TierPrices, tiers: ServiceTiers, mayAskAny: boolean): number {
  const isAutoListed = !mayAskAny && Object.keys(prices.own).length === 0;
  return TIER_FIELDS.reduce((product, field) => {
    // Most calls name no tier and cost the listed price.
    if (tiers[field] === undefined && isAutoListed) return product;
    const tier = tiers[field] ?? (mayAskAny ? null : 'auto');
    const factor = tier === null ? null : factorOf(prices, field, tier);
    return product * (factor ?? highestFactor(prices, field));
  }, 1);
}

function highestFactor(prices: TierPrices, field: TierField): number {
  const listed = rowsFor(prices, field).flatMap(([, tiers]) => tiers.split(' '));
  const own = field === 'service_tier' ? Object.values(prices.own) : [];
  return Math.max(1, ...own, ...listed.map((tier) => factorOf(prices, field, tier) ?? 1));
}

function factorOf(prices: TierPrices, field: TierField, tier: string): number | null {
  const own = Object.entries(prices.own).find(([name]) => name.toLowerCase() === tier);
  // Only `auto` of the service tier sets the price of calls without the field.
  if (own !== undefined && (tier !== 'auto' || field === 'service_tier')) return own[1];
  const row = [...rowsFor(prices, field), ...COMMON].find(
    ([of, tiers]) => of === field && tiers.split(' ').includes(tier),
  );
  return row?.[2] ?? null;
}

function rowsFor({ list, model }: TierPrices, field: TierField): readonly TierRow[] {
  const names = listedNames(model ?? '');
  const isOf = (models: string): boolean =>
    models.split(' ').some((start) => names.some((name) => name.startsWith(start)));
  return (list?.rows ?? []).filter(
    ([of, , , models]) => of === field && (models === undefined || isOf(models)),
  );
}

/** Adds the tiers that the headers of a call request to those of its body. */
export function withTierHeaders(tiers: RequestedTiers, headers: Headers): RequestedTiers {
  const found = TIER_HEADERS.filter(([header]) => headers.has(header));
  if (found.length === 0) return tiers;
  const asked: Partial<Record<TierField, string>> = { ...tiers.asked };
  const names: Partial<Record<TierField, string>> = { ...tiers.names };
  let { odd } = tiers;
  for (const [header, field] of found) {
    const isSecond = asked[field] !== undefined;
    if (isSecond) odd ??= { field: header, why: 'names a tier in addition to another field' };
    asked[field] = (headers.get(header) ?? '').trim().toLowerCase();
    names[field] = header;
  }
  return { ...tiers, asked, names, odd };
}

export function tiersInAnswer(headers: Headers): ServiceTiers {
  const reported = REPORTED_TIER_HEADERS.map(([header, field]) =>
    reportedTier(field, headers.get(header)),
  );
  return Object.assign({}, ...reported) as ServiceTiers;
}
