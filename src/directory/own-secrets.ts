import type { Config, GroupConfig } from '../contract/config/config.ts';

/**
 * Returns the secrets configured on the upstreams of a group's members, by upstream id. Built-in upstreams have none.
 */
export function ownSecretsOf(
  { upstreams }: Pick<Config, 'upstreams'>,
  { members }: Pick<GroupConfig, 'members'>,
): Readonly<Record<string, string>> {
  const named = new Set(members.map(({ upstream }) => upstream));
  return Object.fromEntries(
    upstreams.flatMap(({ id, auth }) =>
      named.has(id) && typeof auth === 'object' ? [[id, auth.secret]] : [],
    ),
  );
}
