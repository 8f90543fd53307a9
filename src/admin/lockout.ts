import type { Config } from '../contract/config/config.ts';
import { KEYLESS_KEPT_MS, type KeylessCaller } from '../contract/reasons.ts';
import { plural } from '../core/words/figures.ts';
import { directoryOf, type Env } from '../env.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { requiresKey } from '../routing/key-access.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';

/** Maximum number of upstreams in a warning. */
const NAMED_MAX = 5;

/** Returns callers without a gateway key whose calls were served within the last hour. */
export function keylessCallers(env: Env): Promise<KeylessCaller[]> {
  return directoryOf(env).keyless(Date.now() - KEYLESS_KEPT_MS);
}

/** Returns the upstreams that need a gateway key in a configuration, and did not in the one before. */
function closedBy(before: Config, config: Config): ReadonlySet<string> {
  const open = [...resolveUpstreams(before, BUILT_IN_UPSTREAMS).values()]
    .filter((upstream) => !requiresKey(before, upstream))
    .map(({ id }) => id);
  const now = resolveUpstreams(config, BUILT_IN_UPSTREAMS);
  return new Set(
    open.filter((id) => {
      const upstream = now.get(id);
      return upstream !== undefined && requiresKey(config, upstream);
    }),
  );
}

/** Returns the callers that a change locks out, because it requires a gateway key. */
export function lockedOut(
  callers: readonly KeylessCaller[],
  before: Config,
  config: Config,
): KeylessCaller[] {
  const closed = closedBy(before, config);
  return callers.filter(({ upstream }) => closed.has(upstream));
}

/** Warns about a change that locks out callers of the last hour. */
export async function lockoutWarnings(env: Env, before: Config, config: Config): Promise<string[]> {
  // Most changes lock out no callers, and need no request.
  if (closedBy(before, config).size === 0) return [];
  try {
    const out = lockedOut(await keylessCallers(env), before, config);
    return out.length === 0 ? [] : [lockoutText(out)];
  } catch {
    return [
      'This change requires a gateway key from callers that needed none. The callers of the last hour without a key could not be counted. `GET /keyless-callers` lists them.',
    ];
  }
}

function lockoutText(out: readonly KeylessCaller[]): string {
  const { callers, calls } = sumOf(out);
  const byUpstream = [...Map.groupBy(out, ({ upstream }) => upstream)];
  const named = byUpstream
    .slice(0, NAMED_MAX)
    .map(([id, those]) => `\`${id}\` (${plural(sumOf(those).callers, 'caller')})`);
  const more = byUpstream.length - named.length;
  return (
    `Callers without a gateway key will be rejected with \`key_missing\`: ${plural(callers, 'caller')} with ${plural(calls, 'call')} ` +
    `within the last hour, at ${named.join(', ')}${more > 0 ? ` and ${plural(more, 'other upstream')}` : ''}. ` +
    'To move them one by one, set `require_key: false`, give them keys, and remove the setting when `GET /keyless-callers` is empty.'
  );
}

/** Counts callers and their calls. A provider key at two upstreams counts twice. */
export function sumOf(callers: readonly KeylessCaller[]): { callers: number; calls: number } {
  return { callers: callers.length, calls: callers.reduce((sum, { calls }) => sum + calls, 0) };
}
