import type { Upstream } from '../contract/config/upstream.ts';
import { providerOf } from '../providers/index.ts';

/** Headers in which most providers name a call. */
const COMMON = ['x-request-id', 'request-id'] as const;

/** Maximum length of an id. A longer one is ignored. */
const LENGTH_MAX = 128;

/** Upstreams never change, so the headers of each are looked up once. */
const headersOf = new WeakMap<Upstream, readonly string[]>();

function headersAt(upstream: Upstream): readonly string[] {
  let names = headersOf.get(upstream);
  if (names === undefined) {
    const own = providerOf(upstream)?.requestId?.header;
    names = own === undefined ? COMMON : [own, ...COMMON];
    headersOf.set(upstream, names);
  }
  return names;
}

/** The upstream's own id of a call, which its support needs. null if the answer has none. */
export function requestIdOf(headers: Headers, upstream: Upstream): string | null {
  for (const name of headersAt(upstream)) {
    const id = headers.get(name);
    if (id !== null && id !== '' && id.length <= LENGTH_MAX) return id;
  }
  return null;
}
