import type { GroupConfig } from '../contract/config/config.ts';
import { memberIdOf, type MemberConfig } from '../contract/config/members.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { hasSibling } from './sibling-path.ts';

/** A place where calls of a group can run, as calls look at it. */
export interface GroupMember {
  readonly id: string;
  readonly config: MemberConfig;
  /** Names of models there, by the names of callers in lower case. */
  readonly models: ReadonlyMap<string, string>;
}

/** Groups never change within one version of the configuration, so each one's members are looked through once. */
const compiled = new WeakMap<GroupConfig, readonly GroupMember[]>();

/** Lists the members that a group names, in its order. An automatic group (null) names none. */
export function membersOf(config: GroupConfig | null): readonly GroupMember[] {
  if (config === null || !hasMembers(config)) return [];
  let members = compiled.get(config);
  if (members === undefined) {
    members = config.members.map((member) => ({
      id: memberIdOf(member),
      config: member,
      models: new Map(
        Object.entries(member.models).map(([name, there]) => [name.toLowerCase(), there]),
      ),
    }));
    compiled.set(config, members);
  }
  return members;
}

/** Tells whether a group names members. A configuration of the version before knows of none. */
export function hasMembers({ members }: { readonly members?: GroupConfig['members'] }): boolean {
  return members !== undefined && members.length > 0;
}

/** Name of the Worker secret that calls at a member go out with; null: its upstream wants none. */
export function secretOf({ config: { secret } }: GroupMember, upstream: Upstream): string | null {
  return secret ?? upstream.secret;
}

/** Lists members in the order in which a call would take the first one that is free: by tier, then as they are listed. */
export function byTier(members: readonly GroupMember[]): GroupMember[] {
  return members.toSorted((a, b) => a.config.tier - b.config.tier);
}

/**
 * Tells whether calls to an upstream, by a path there or any (null), have a route at some member of a group, or it names
 * none. Where no member's upstream is there any more it takes them all the same: they are refused, and not let past it.
 */
export function hasRouteIn(
  config: GroupConfig,
  upstreams: ReadonlyMap<string, Upstream>,
): (from: Upstream, path: string | null) => boolean {
  const ids = new Set(membersOf(config).map((member) => member.config.upstream));
  const places = [...ids].flatMap((id) => upstreams.get(id) ?? []);
  if (places.length === 0) return () => true;
  return (from, path) => places.some((to) => to === from || hasSibling(from, to, path));
}
