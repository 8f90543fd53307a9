import {
  toldTier,
  type AskedTiers,
  type TierField,
  type Tiers,
} from '../../upstream/usage/tiers.ts';

/** Headers that choose the tier of a call. */
const TIER_HEADERS: readonly (readonly [header: string, field: TierField])[] = [
  // https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html, 2026-11-26
  ['x-amzn-bedrock-service-tier', 'service_tier'],
  ['x-amzn-bedrock-performanceconfig-latency', 'latency'],
  // https://docs.cloud.google.com/vertex-ai/generative-ai/docs/priority-paygo, 2026-11-26
  ['x-vertex-ai-llm-shared-request-type', 'service_tier'],
];

/** Headers in which answers report the tier that served the call. */
const REPORTED_HEADERS: typeof TIER_HEADERS = [
  ...TIER_HEADERS,
  // https://ai.google.dev/gemini-api/docs/priority-inference, 2026-11-26
  ['x-gemini-service-tier', 'service_tier'],
];

/** Adds the tiers that the headers of a call ask for to those of its body. */
export function withTierHeaders(tiers: AskedTiers, headers: Headers): AskedTiers {
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

/** Reads the tiers that the headers of an answer report. */
export function tiersInAnswer(headers: Headers): Tiers {
  const told = REPORTED_HEADERS.map(([header, field]) => toldTier(field, headers.get(header)));
  return Object.assign({}, ...told) as Tiers;
}
