/** Lessons from calls of one model. */
interface ModelTokens {
  readonly model: string;
  /** The mean of actual by estimated input tokens, and how many calls went into it. */
  inputFactor: number;
  inputSamples: number;
  /** The mean of output tokens, and how many calls went into it. */
  outputMean: number;
  outputSamples: number;
}

/** Lessons about estimates of tokens, by model, the last learned last. Kept in a row. */
export interface TokenFactors {
  models: ModelTokens[];
}

/** The usage that an upstream reported, beside what was estimated. Null: not known to the end. */
export interface SeenUsage {
  /** Before the factor. */
  readonly inputEstimate: number;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

/** Maximum models that are remembered; the one that was not called for longest goes first. */
export const MODELS_MAX = 100;

/** Maximum length of a name. Names come from callers, and a longer one is no model's. */
const MODEL_LENGTH_MAX = 200;

/** Least weight of the newest call in a mean. The first ones weigh as much as each other. */
const SAMPLE_WEIGHT = 0.1;

/** Minimum and maximum factor that one call teaches: images and tools are not text. */
const FACTOR_MIN = 0.5;
const FACTOR_MAX = 2;

/** Nothing learned. */
export function emptyTokenFactors(): TokenFactors {
  return { models: [] };
}

/** Reads the factor for an estimate of input tokens: from 0.5 to 2, and 1 where nothing is known. */
export function inputFactor({ models }: TokenFactors, model: string): number {
  const known = models.find((each) => each.model === model);
  return known === undefined || known.inputSamples === 0 ? 1 : known.inputFactor;
}

/** Reads the mean of output tokens of the model's last calls; null where nothing is known. */
export function outputMean({ models }: TokenFactors, model: string): number | null {
  const known = models.find((each) => each.model === model);
  return known === undefined || known.outputSamples === 0 ? null : known.outputMean;
}

/** Learns from a call. */
export function observeUsage(factors: TokenFactors, model: string, usage: SeenUsage): void {
  if (model.length > MODEL_LENGTH_MAX) return;
  const known = factors.models.find((each) => each.model === model) ?? newModel(model);
  const others = factors.models.filter((each) => each !== known);
  factors.models = [...others.slice(-(MODELS_MAX - 1)), known];
  const { inputEstimate, inputTokens, outputTokens } = usage;
  if (inputTokens !== null && inputEstimate > 0) {
    const seen = Math.min(FACTOR_MAX, Math.max(FACTOR_MIN, inputTokens / inputEstimate));
    known.inputSamples += 1;
    known.inputFactor += weight(known.inputSamples) * (seen - known.inputFactor);
  }
  if (outputTokens !== null) {
    known.outputSamples += 1;
    known.outputMean += weight(known.outputSamples) * (outputTokens - known.outputMean);
  }
}

function newModel(model: string): ModelTokens {
  return { model, inputFactor: 1, inputSamples: 0, outputMean: 0, outputSamples: 0 };
}

function weight(samples: number): number {
  return Math.max(SAMPLE_WEIGHT, 1 / samples);
}
