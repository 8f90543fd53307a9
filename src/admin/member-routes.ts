import type { Config } from '../contract/config/config.ts';
import { memberIdOf } from '../contract/config/members.ts';
import type { GroupRpc } from '../contract/rpc/group-rpc.ts';
import { askPools, readDirectory } from '../overview/pools.ts';
import { isOwnPartition } from '../routing/partition.ts';
import { note } from './change.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { requireGroup } from './group-routes.ts';
import { requirePools, unreachable } from './pools.ts';
import { ProblemError } from './problem.ts';
import { serve } from './serve.ts';

/** Serves taking a member of a group out, and bringing one back. */
export function addMemberRoutes(app: AdminApp): void {
  serve(app, 'takeOutMember', ({ context, params: { name, member } }) =>
    switchMember(context, name, member, 'take out', (pool) => pool.takeOut(member)),
  );
  serve(app, 'bringBackMember', ({ context, params: { name, member } }) =>
    switchMember(context, name, member, 'bring back', (pool) => pool.bringBack(member)),
  );
}

async function switchMember(
  context: AdminContext,
  name: string,
  member: string,
  verb: string,
  work: (pool: GroupRpc) => Promise<boolean>,
) {
  const directory = await readDirectory(context.env);
  requireMember(directory.config, name, member);
  // Calls with keys of their own go to no member.
  const pools = requirePools(directory, name).filter(({ partition }) => !isOwnPartition(partition));
  const asked = await askPools(context.env, directory.config, pools, work);
  await note(context, `group ${name}: ${verb} member ${member}`);
  const done = asked.filter((one) => 'answer' in one && one.answer).length;
  const body = { group: name, member, pools: done, unreachable: unreachable(asked) };
  return { status: 200, body } as const;
}

function requireMember(config: Config, name: string, member: string): void {
  const ids = requireGroup(config, name).members.map(memberIdOf);
  if (ids.includes(member)) return;
  const known = ids.length === 0 ? 'It names none.' : `It has: ${ids.join(', ')}.`;
  throw new ProblemError(404, `The group "${name}" has no member "${member}". ${known}`);
}
