import { readErrorFields } from './error-fields.ts';

/** OpenAI's code, and whoever speaks like it. */
const CODE = 'unsupported_country_region_territory';

/** Gemini has no code of its own for it: `FAILED_PRECONDITION` stands for much else. */
const TEXT = /user location is not supported|country, region, or territory not supported/;

/**
 * Tells whether an error says that the upstream does not serve the region that the call came from, which is
 * where the Worker runs and not where its caller is.
 */
export function refusesRegion(status: number, headers: Headers, body: string): boolean {
  if (status !== 400 && status !== 403) return false;
  const { codes, text } = readErrorFields(body, headers);
  return codes.has(CODE) || TEXT.test(text);
}
