import type { Dialect } from '../../contract/dialect.ts';
import { textOf, type Frame } from '../../upstream/socket/frame.ts';
import { tiersInUsage, reportedTier, type ServiceTiers } from '../../upstream/usage/tiers.ts';
import { usageFromJson, type TokenUsage } from '../../upstream/usage/usage.ts';
import type { MeteredUsage } from '../../upstream/usage/usage-meter.ts';

/** How a message that tells usage may be told from others without parsing it. */
const MAY_REPORT = /"usage(?:Metadata)?"\s*:/;

/** The use of a session, or of a turn: of each of its answers the upstream reports it once, and they add up. */
export class SocketUsage {
  readonly #shape: Dialect;
  #sum: TokenUsage | null = null;
  /** The tiers of the last answer. */
  #tiers: ServiceTiers = {};

  constructor(shape: Dialect) {
    this.#shape = shape;
  }

  /** Reads a message of the upstream. */
  read(frame: Frame): void {
    const text = textOf(frame);
    if (!MAY_REPORT.test(text)) return;
    const { usage, tiers } = reportIn(text);
    this.#add(usageFromJson(this.#shape, usage));
    this.#tiers = { ...this.#tiers, ...tiers };
  }

  /** Whether anything was reported. */
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
