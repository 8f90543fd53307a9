import type { Dialect } from '../../contract/dialect.ts';
import { frameText, type Frame } from '../../upstream/socket/messages.ts';
import { tiersInUsage, reportedTier, type ServiceTiers } from '../../upstream/usage/tiers.ts';
import { usageFromJson, type TokenUsage } from '../../upstream/usage/usage.ts';
import type { MeteredUsage } from '../../upstream/usage/usage-meter.ts';

/** Recognizes messages that may report usage, without parsing them. */
const MAY_REPORT = /"usage(?:Metadata)?"\s*:/;

/** The usage of a session or a turn. The upstream reports it once for each answer, and the reports are added up. */
export class SocketUsage {
  readonly #shape: Dialect;
  #sum: TokenUsage | null = null;
  /** The tiers of the last answer. */
  #tiers: ServiceTiers = {};

  constructor(shape: Dialect) {
    this.#shape = shape;
  }

  read(frame: Frame): void {
    const text = frameText(frame);
    if (!MAY_REPORT.test(text)) return;
    const { usage, tiers } = reportIn(text);
    this.#add(usageFromJson(this.#shape, usage));
    this.#tiers = { ...this.#tiers, ...tiers };
  }

  get isKnown(): boolean {
    return this.#sum !== null;
  }

  end(): MeteredUsage {
    const seen = { usage: this.#sum, outputTokensSeen: this.#sum?.outputTokens ?? 0 };
    return { ...seen, tiers: this.#tiers };
  }

  #add(usage: TokenUsage | null): void {
    if (usage === null) return;
    const before = this.#sum;
    this.#sum = before === null ? usage : sumOf(before, usage);
  }
}

function sumOf(one: TokenUsage, other: TokenUsage): TokenUsage {
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    cacheReadTokens: one.cacheReadTokens + other.cacheReadTokens,
    cacheWriteTokens: one.cacheWriteTokens + other.cacheWriteTokens,
    outputTokens: one.outputTokens + other.outputTokens,
  };
}

/** OpenAI reports with the event that ends an answer or a transcription, Gemini in a separate field. */
function reportIn(text: string): { readonly usage: unknown; readonly tiers: ServiceTiers } {
  try {
    const message = JSON.parse(text) as {
      readonly response?: { readonly usage?: unknown; readonly service_tier?: unknown } | null;
      readonly usageMetadata?: unknown;
      readonly usage?: unknown;
    };
    const usage = message.response?.usage ?? message.usageMetadata ?? message.usage;
    const tier = reportedTier('service_tier', message.response?.service_tier);
    return { usage, tiers: { ...tiersInUsage(usage), ...tier } };
  } catch {
    return { usage: null, tiers: {} };
  }
}
