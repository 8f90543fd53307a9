/**
 * Names of the cookies that authorize a browser at Headgate: our own sessions and those of Cloudflare Access. A name
 * may follow a `=`, which browsers omit for nameless cookies, or a comma, which joins repeated headers.
 */
const OURS = /(?:^|,)[\s=]*(?:headgate_|cf_(?:authorization|appsession|binding))/i;

/** Paths of our own pages. A cookie for `/` is also meant for the upstreams. */
const OUR_PATH = /;\s*path\s*=\s*"?\/(?:admin|healthz|metrics|status)(?:[/;\s"]|$)/i;

/** Whether a cookie, as `name=value`, is meant for Headgate and not for an upstream. */
export function isOurCookie(pair: string): boolean {
  return OURS.test(pair);
}

/**
 * Whether an upstream's `Set-Cookie` would affect Headgate, by the name of one of our cookies or by the path of our
 * pages.
 */
export function reachesIn(setCookie: string): boolean {
  return OURS.test(setCookie) || OUR_PATH.test(setCookie);
}

/** Removes, in place, matching cookies of a request, each as `name=value`. Returns whether any matched. */
export function dropCookies(headers: Headers, isGone: (pair: string) => boolean): boolean {
  const cookie = headers.get('cookie');
  if (cookie === null) return false;
  const all = cookie.split(';').map((pair) => pair.trim());
  const kept = all.filter((pair) => !isGone(pair));
  if (kept.length === all.length) return false;
  if (kept.length === 0) headers.delete('cookie');
  else headers.set('cookie', kept.join('; '));
  return true;
}
