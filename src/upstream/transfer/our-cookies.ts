/**
 * Names of the cookies that let a browser in here: our own sessions and those of Cloudflare Access. A name may
 * stand behind a `=`, which browsers send without it, and behind a comma, which joins repeated headers.
 */
const OURS = /(?:^|,)[\s=]*(?:headgate_|cf_(?:authorization|appsession|binding))/i;

/** Where our own pages are. A cookie for `/` is for the upstreams, too. */
const OUR_PATH = /;\s*path\s*=\s*"?\/(?:admin|healthz|metrics|status)(?:[/;\s"]|$)/i;

/** Whether a cookie, as `name=value`, is for Headgate and not for an upstream. */
export function isOurCookie(pair: string): boolean {
  return OURS.test(pair);
}

/** Whether an upstream's `Set-Cookie` would reach into Headgate: by the name of a cookie of ours, or for our pages. */
export function reachesIn(setCookie: string): boolean {
  return OURS.test(setCookie) || OUR_PATH.test(setCookie);
}

/** Removes, in place, matching cookies of a request, each as `name=value`. False: there are none. */
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
