import * as z from 'zod';
import type { Frozen } from './frozen.ts';

/** Time for which callers without a gateway key are listed, in milliseconds. */
export const KEYLESS_KEPT_MS = 3_600_000;

/** Served calls of a caller without a gateway key at an upstream. */
export const keylessCallerSchema = z.object({
  upstream: z.string().describe('Id of the upstream.'),
  caller: z
    .string()
    .nullable()
    .describe(
      'Fingerprint of the provider key, or `anonymous` if there is no key. null sums up the callers that are not listed.',
    ),
  calls: z.int().positive().describe('Number of served calls.'),
  last_at: z.iso.datetime().describe('Time of the last one.'),
});

export type KeylessCaller = Frozen<z.output<typeof keylessCallerSchema>>;
