import * as z from 'zod';

/** What a caller may say of its call in headers of ours, all optional. */
export interface CallerHeaders {
  readonly upstream: string | null;
  readonly model: string | null;
  readonly agent: string | null;
  /** How long the call may wait, in milliseconds. 0: not at all. Null: as long as the group allows. */
  readonly maxWaitMs: number | null;
}

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000 } as const;

const maxWait = z
  .string()
  .regex(/^\d{1,9}(\.\d{1,3})?(ms|s|m)?$/)
  .transform((text) => {
    const unit = /(ms|s|m)$/.exec(text)?.[0] as keyof typeof UNIT_MS | undefined;
    return Math.round(parseFloat(text) * UNIT_MS[unit ?? 's']);
  });

/** `x-stainless-timeout`, in seconds: SDKs say with it how long they will wait for headers. */
const clientTimeout = z.string().regex(/^\d{1,6}(\.\d+)?$/);

export type HeadersRead =
  | { readonly ok: true; readonly value: CallerHeaders }
  | { readonly ok: false; readonly message: string };

/** Reads the caller's headers; one that is not understood is an error that names it. */
export function readCallerHeaders(headers: Headers): HeadersRead {
  const said = headers.get('headgate-max-wait');
  let maxWaitMs: number | null = null;
  if (said !== null) {
    const parsed = maxWait.safeParse(said.trim());
    if (!parsed.success) {
      return {
        ok: false,
        message: 'headgate-max-wait: expected a duration such as 30s, 500ms, 2m or 0.',
      };
    }
    maxWaitMs = parsed.data;
  }
  const timeout = clientTimeout.safeParse(headers.get('x-stainless-timeout'));
  if (timeout.success) {
    // SDKs cut off the fraction: their 0 is any time-out below a second, not "do not wait".
    const timeoutMs = parseFloat(timeout.data) * 1_000 || 1_000;
    maxWaitMs = Math.min(maxWaitMs ?? Infinity, timeoutMs);
  }
  const value = {
    upstream: headers.get('headgate-upstream'),
    model: headers.get('headgate-model'),
    agent: headers.get('headgate-agent')?.slice(0, 200) ?? null,
    maxWaitMs,
  };
  return { ok: true, value };
}
