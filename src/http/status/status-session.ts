import type { Context } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { sign, verify } from 'hono/jwt';
import type { Env } from '../../env.ts';
import { refusedKey } from '../../routing/key-access.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import type { StatusCaller } from './caller-pools.ts';

/** How long a browser shows the page without asking for the key again. */
const SESSION_S = 3_600;

const COOKIE = 'headgate_status';

type StatusContext = Context<{ Bindings: Env }>;

/**
 * Remembers in a browser whose status it shows, so that the page can refresh itself and the key stands in
 * no address. The cookie holds a name and an end, signed, and nothing of the key.
 *
 * @param hash what the gateway key was found by; null: a provider key
 */
export async function rememberCaller(
  context: StatusContext,
  table: RoutingTable,
  caller: StatusCaller,
  hash: string | null,
): Promise<void> {
  const exp = Math.floor(Date.now() / 1_000) + SESSION_S;
  const claims = { sub: caller.id, for: markOf(hash ?? ''), fp: caller.fingerprint ?? '', exp };
  const cookie = await sign(claims, secretOf(table), 'HS256');
  setCookie(context, COOKIE, cookie, { ...attributes(context), maxAge: SESSION_S });
}

/** Whose status the browser shows. Null: nobody's, or its key opens nothing any more. */
export async function rememberedCaller(
  context: StatusContext,
  table: RoutingTable,
): Promise<StatusCaller | null> {
  const cookie = getCookie(context, COOKIE);
  if (cookie === undefined) return null;
  try {
    const claims = await verify(cookie, secretOf(table), 'HS256');
    const [id, mark, fp] = [claims['sub'], claims['for'], claims['fp']].map(String);
    if (table.keys.size === 0) {
      return mark === '' && id !== undefined ? { id, key: null, fingerprint: id } : null;
    }
    const found = [...table.keys].find(([hash, key]) => key.id === id && markOf(hash) === mark);
    if (found === undefined || refusedKey(found[1], found[0]) !== null) return null;
    return { id: found[1].id, key: found[1], fingerprint: fp === '' ? null : (fp ?? null) };
  } catch {
    return null; // whatever is wrong with it: it shows nothing
  }
}

/** Shows nobody's status any more. */
export function forgetCaller(context: StatusContext): void {
  deleteCookie(context, COOKIE, attributes(context));
}

/** A key of its own: what is signed for this page means nothing anywhere else. */
function secretOf({ snapshot }: RoutingTable): string {
  return `status ${snapshot.fingerprintKey}`;
}

/** Changes with the key, and says nothing of it: the first 64 bits of its digest. */
function markOf(hash: string): string {
  return hash.slice('sha256:'.length, 'sha256:'.length + 16);
}

function attributes(context: StatusContext) {
  const { protocol, hostname } = new URL(context.req.url);
  const isLocal = protocol === 'http:' && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname);
  return { path: '/status', httpOnly: true, sameSite: 'Strict', secure: !isLocal } as const;
}
