interface CountingFetchSent {
  readonly at: number;
  readonly status: number;
  readonly retryAfterMs: number;
}

/** A fetch that notes what it sends, and what comes back. */
export function countingFetch(): {
  readonly sent: readonly CountingFetchSent[];
  readonly fetch: typeof fetch;
} {
  const sent: CountingFetchSent[] = [];
  return {
    sent,
    async fetch(input, init) {
      const at = performance.now();
      const response = await fetch(input, init);
      const retryAfterMs = Number(response.headers.get('retry-after-ms') ?? NaN);
      sent.push({ at, status: response.status, retryAfterMs });
      return response;
    },
  };
}
