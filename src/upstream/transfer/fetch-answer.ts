export interface Fetcher {
  fetch(url: string, init: RequestInit): Promise<Response>;
}

/** How an older runtime's error begins for an answer that is no HTTP; a connection that broke is told by name. */
const NOT_HTTP = /^internal error/;

/**
 * Maximum of tries. Each ends one connection that is spoilt, and the pool may hold several: one for each call
 * that was under way at once when the upstream wrote too much. With one repeat a few of 2,000 innocent calls
 * still met a second; with three none did.
 */
const ATTEMPTS_MAX = 4;

/**
 * Asks an upstream. Some write behind the end of an answer: more than its length, or a body on a 204. workerd
 * 2026-09-18 keeps the connection all the same and takes those bytes for the beginning of the next answer,
 * which is an innocent call's (2026-11-17 does not; a Worker cannot choose). Nothing in a Worker keeps a connection from being used again, but such a call
 * ends that one, so it is sent again where its body is there: `again` gives it, and is null otherwise.
 * The upstream may have worked on the call already; its connection is closed then, as if its caller had left.
 */
export async function fetchAnswer(
  fetcher: Fetcher,
  url: string,
  init: RequestInit,
  again: (() => BodyInit | null) | null,
): Promise<Response> {
  let attempt = init;
  for (let attempts = 1; ; attempts += 1) {
    try {
      return await fetcher.fetch(url, attempt);
    } catch (error) {
      if (again === null || attempts === ATTEMPTS_MAX || !isNotHttp(error)) throw error;
      if (init.signal?.aborted === true) throw error;
      attempt = { ...init, body: again() };
    }
  }
}

function isNotHttp(error: unknown): boolean {
  return error instanceof Error && NOT_HTTP.test(error.message);
}
