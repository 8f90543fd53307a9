import type { TierList } from '../tiers.ts';

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
    // For other models no price is published, so the highest multiple applies.
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
    // Capacity that is paid in advance. The price of priority is published only by model and region.
    rows: [['service_tier', 'reserved', 1]],
  },
  groq: {
    source: 'https://console.groq.com/docs/service-tiers',
    date: '2026-11-26',
    // Capacity that is paid in advance. Flex costs as much as on_demand.
    rows: [['service_tier', 'performance', 1]],
  },
} satisfies Record<string, TierList>;
