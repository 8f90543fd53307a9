import { ticked } from '../config/field-error.ts';
import type { Config, GroupConfig } from '../contract/config/config.ts';
import { memberIdOf } from '../contract/config/members.ts';
import { askPools, readDirectory } from '../overview/pools.ts';
import { isOwnPartition } from '../routing/partition.ts';
import { note } from './change.ts';
import type { AdminApp } from './context.ts';
import { changeGroup, requireGroup } from './group-routes.ts';
import { requirePools, unreachable } from './pools.ts';
import { ProblemError } from './problem.ts';
import { serve } from './serve.ts';

export function addMemberRoutes(app: AdminApp): void {
  serve(app, 'takeOutMember', async ({ context, params: { name, member } }) => {
    const { reply } = await changeGroup(context, name, `disable member ${member}`, (config) =>
      switched(config, name, member, false),
    );
    return { status: 200, ...reply };
  });

  serve(app, 'bringBackMember', async ({ context, params: { name, member } }) => {
    const verb = `enable member ${member}`;
    const { reply, isChanged } = await changeGroup(context, name, verb, (config) =>
      switched(config, name, member, true),
    );
    const directory = await readDirectory(context.env);
    // Calls with their own keys do not use members.
    const pools = requirePools(directory, name).filter(
      ({ partition }) => !isOwnPartition(partition),
    );
    const asked = await askPools(context.env, directory.config, pools, (pool) =>
      pool.bringBack(member),
    );
    if (!isChanged) await note(context, `group ${name}: ${verb}`);
    const done = asked.filter((one) => 'answer' in one && one.answer).length;
    const body = { ...reply.body, pools: done, unreachable: unreachable(asked) };
    return { status: 200, ...reply, body };
  });
}

function switched(config: Config, name: string, id: string, enabled: boolean): GroupConfig {
  const group = requireGroup(config, name);
  const at = requireMember(group, id);
  return {
    ...group,
    members: group.members.map((member, index) => (index === at ? { ...member, enabled } : member)),
  };
}

/** Returns the index of a member in its group. Throws if there is none. */
export function requireMember({ name, members }: GroupConfig, id: string): number {
  const ids = members.map(memberIdOf);
  const at = ids.indexOf(id);
  if (at >= 0) return at;
  const known = ids.length === 0 ? 'It has no members.' : `It has: ${ticked(ids)}.`;
  throw new ProblemError(404, `Group \`${name}\` has no member \`${id}\`. ${known}`);
}
