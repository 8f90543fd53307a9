import type { Config } from '../../contract/config/config.ts';
import { TURN_CONNECTIONS_EACH } from '../../contract/config/upstream-config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { upstreamsOf } from '../../routing/group-match.ts';
import { countsTokens } from '../../routing/metered.ts';

/**
 * Warns of upstreams where every WebSocket is a session and groups depend on models that Headgate often cannot read.
 */
export function sessionWarnings(
  { groups, keys }: Config,
  upstreams: ReadonlyMap<string, Upstream>,
): string[] {
  const byModel = groups.filter(
    (group) =>
      group.match.models.length > 0 || group.partition_by.includes('model') || countsTokens(group),
  );
  const isLimited = keys.some((key) => key.groups.length > 0);
  return byModel.flatMap((group) =>
    upstreamsOf(group, upstreams)
      .filter(({ sockets, secret }) => {
        const mustBeTrue = secret !== null || isLimited || countsTokens(group);
        return sockets === 'any' && mustBeTrue;
      })
      .map(
        ({ id }) =>
          `Group \`${group.name}\` depends on the model, and upstream \`${id}\` treats every WebSocket as a session (\`websocket: session\`). ` +
          'Headgate can read models only on realtime routes, so it rejects sessions on other routes there. Remove `websocket: session`, or `match.models` of the group.',
      ),
  );
}

/** Warns of upstreams for turns with the default limit of connections, which may be too low for many agents. */
export function connectionNotes(document: unknown): string[] {
  const { upstreams } = Object(document) as { readonly upstreams?: unknown };
  const entries: readonly unknown[] = Array.isArray(upstreams) ? upstreams : [];
  return entries.flatMap((entry) => {
    const { id, websocket, turn_connections_each: each } = Object(entry) as Record<string, unknown>;
    if (websocket !== 'turns' || each !== undefined) return [];
    return [
      `\`turn_connections_each\` of upstream \`${String(id)}\` is not set, so one caller may have at most ${TURN_CONNECTIONS_EACH} connections for turns open there at once. ` +
        'Raise it if one key serves more agents.',
    ];
  });
}
