/** A way to an upstream, straight or through Headgate. */
export interface SdkRoute {
  /** Base URL of the SDK. */
  readonly baseUrl: string;
  /** Name of a model on this way. */
  readonly model: (name: string) => string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A call with an SDK whose result has to be the same on every way. */
export interface SdkCase {
  readonly name: string;
  run(route: SdkRoute): Promise<unknown>;
}

/** A way on which models keep their own names. */
export const route = (baseUrl: string, headers?: Record<string, string>): SdkRoute => ({
  baseUrl,
  model: (name) => name,
  ...(headers !== undefined && { headers }),
});

/** A way through `/v1/*`, with the upstream's id in front of the model. */
export const prefixed = (baseUrl: string, id: string): SdkRoute => ({
  baseUrl,
  model: (name) => `${id}/${name}`,
});

/** Question that is asked everywhere; the strict upstream repeats the words. */
export const QUESTION = 'How much water does the canal take?';

/** A provider key that callers bring. */
export const CALLER_KEY = 'sk-caller-0123456789';
