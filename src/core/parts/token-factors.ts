interface ModelTokens {
  readonly model: string;
  /** The mean of actual divided by estimated input tokens, and its number of samples. */
  inputFactor: number;
  inputSamples: number;
  /** The mean of output tokens, and its number of samples. */
  outputMean: number;
  outputSamples: number;
}

/** Lessons about token estimates by model, newest last. They are stored. */
export interface TokenFactors {
  models: ModelTokens[];
}

/** The use that an upstream reported, and the estimate. null if unknown or incomplete. */
export interface SeenUsage {
  /** Before the factor is applied. */
  readonly inputEstimate: number;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

/** Maximum number of remembered models. The one with the oldest call is removed first. */
export const MODELS_MAX = 100;

/** Maximum length of a name. Names come from callers, and no model has a longer one. */
const MODEL_LENGTH_MAX = 200;

/** Minimum weight of the newest call in a mean. The first samples have equal weights. */
const SAMPLE_WEIGHT = 0.1;

/** Minimum and maximum factor that one call teaches, because images and tools are not text. */
const FACTOR_MIN = 0.5;
const FACTOR_MAX = 2;

export function emptyTokenFactors(): TokenFactors {
  return { models: [] };
}

/** Returns the factor for an estimate of input tokens, from 0.5 to 2. 1 if the model is unknown. */
export function inputFactor({ models }: TokenFactors, model: string): number {
  const known = models.find((each) => each.model === model);
  return known === undefined || known.inputSamples === 0 ? 1 : known.inputFactor;
}

/** Returns the mean of output tokens of the model's last calls. null if the model is unknown. */
export function outputMean({ models }: TokenFactors, model: string): number | null {
  const known = models.find((each) => each.model === model);
  return known === undefined || known.outputSamples === 0 ? null : known.outputMean;
}

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
