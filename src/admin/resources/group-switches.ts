import * as z from 'zod';
import { changeGroup, isUnconfigured, requireGroup } from './groups.ts';
import { switchOfAll, text } from './bulk.ts';
import { type TemporaryChange, lastingSwitches, spanOf, untilSchema } from '../temporary.ts';
import { changedGroupSchema, changedSchema, groupName, groupParams } from '../shapes.ts';
import { invalid, route } from '../route.ts';
import { ProblemError, type AdminContext } from '../context.ts';
import { askGroup, noAutoGroup, requirePools, unreachable } from '../pools.ts';
import { changeConfig, note, withEntry } from '../change.ts';
import { resolveUpstreams } from '../../routing/upstreams.ts';
import { isOwnPartition } from '../../routing/pool.ts';
import { compileGlobs } from '../../routing/glob.ts';
import {
  autoGroupNamed,
  isHeld,
  switchesOf,
  withSwitches,
  type Switches,
} from '../../routing/implied-groups.ts';
import { BUILT_IN_UPSTREAMS } from '../../providers/catalog.ts';
import { askPools, readDirectory } from '../../overview/pools.ts';
import { AUTO_PREFIX } from '../../contract/pool-name.ts';
import { memberIdOf } from '../../contract/config/members.ts';
import { autoGroupSchema, groupSchema } from '../../contract/config/group.ts';
import type { Config, GroupConfig } from '../../contract/config/config.ts';
import { unreachableSchema } from '../../contract/group-status.ts';
import { ticked } from '../../config/field-error.ts';

/** For an automatic group without an entry, these are all settings. */
export const switchedGroupSchema = changedSchema.extend({
  group: z.union([groupSchema, autoGroupSchema]).describe('The group after the change.'),
});

const memberParams = z.strictObject({
  name: groupName,
  member: z.string().min(1).max(300).describe('URL-encoded id of the member.'),
});

/** Describes a route that sets a switch of a group. Operators use these in a hurry, mostly without a body. */
function switchOf(summary: string, effect: string) {
  return {
    tag: 'groups',
    summary,
    description: `${effect} Also applies to automatic groups, in all their current and future pools. Their response contains only \`name\`, \`paused\` and \`draining\`.`,
    role: 'operator',
    params: groupParams,
    answers: { 200: switchedGroupSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  } as const;
}

/** Describes a route that turns a switch on, optionally for a limited time. */
function switchOnOf(summary: string, effect: string) {
  return { ...switchOf(summary, effect), body: untilSchema, isBodyOptional: true } as const;
}

const EDITS: Readonly<Record<'pause' | 'drain' | 'resume', Partial<Switches>>> = {
  pause: { paused: true },
  drain: { draining: true },
  resume: { paused: false, draining: false },
};

export const SWITCH_ROUTES = {
  // Operators use these in a hurry, also for automatic groups.
  pauseGroup: route(
    'POST /groups/{name}/pause',
    switchOnOf('Pause a group', 'Calls are queued until the group is resumed.'),
  ).servedBy(switchTo('pause', { paused: true })),

  drainGroup: route(
    'POST /groups/{name}/drain',
    switchOnOf('Drain a group', 'New calls are rejected. Queued and running calls finish.'),
  ).servedBy(switchTo('drain', { draining: true })),

  resumeGroup: route(
    'POST /groups/{name}/resume',
    switchOf('Resume a group', 'Ends a pause and a drain.'),
  ).servedBy(switchTo('resume', { paused: false, draining: false })),

  relearnGroup: route('POST /groups/{name}/relearn', {
    tag: 'groups',
    summary: 'Discard what a group has learned about its upstream',
    description:
      'Ends a pause that the upstream asked for, closes the breaker, and discards the learned limit, in all pools. Use it after the quota was raised, or after the upstream has recovered. Also applies to automatic groups. Used requests, tokens and budgets stay as they are.',
    role: 'operator',
    params: groupParams,
    answers: {
      200: z.object({
        group: z.string().describe('Name of the group.'),
        pools: z.int().min(0).describe('Number of affected pools.'),
        unreachable: unreachableSchema,
      }),
    },
    problems: [404],
  }).servedBy(async ({ context, params: { name } }) => {
    const asked = await askGroup(context, name, (pool) => pool.relearn());
    await note(context, `group ${name}: relearn`);
    const missing = unreachable(asked);
    const body = { group: name, pools: asked.length - missing.length, unreachable: missing };
    return { status: 200, body };
  }),

  takeOutMember: route('POST /groups/{name}/members/{member}/take-out', {
    tag: 'groups',
    summary: 'Disable a member',
    description:
      'The member gets no calls until it is restored. Sets `enabled: false` of the member in the configuration, for all current and future pools. Its calls in flight finish. Queued calls go to the other members.',
    role: 'operator',
    params: memberParams,
    answers: { 200: changedGroupSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  }).servedBy(async ({ context, params: { name, member } }) => {
    const { reply } = await changeGroup(context, name, `disable member ${member}`, (config) =>
      withMemberSwitched(config, name, member, false),
    );
    return { status: 200, ...reply };
  }),

  bringBackMember: route('POST /groups/{name}/members/{member}/bring-back', {
    tag: 'groups',
    summary: 'Restore a member that is disabled or ejected',
    description:
      'Sets `enabled: true` of the member in the configuration if necessary. If the member is ejected, all current pools end the ejection. The next call shows whether its upstream serves calls again.',
    role: 'operator',
    params: memberParams,
    answers: {
      200: changedGroupSchema.extend({
        pools: z.int().min(0).describe('Number of pools that have restored the member.'),
        unreachable: unreachableSchema,
      }),
    },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  }).servedBy(async ({ context, params: { name, member } }) => {
    const verb = `enable member ${member}`;
    const { reply, isChanged } = await changeGroup(context, name, verb, (config) =>
      withMemberSwitched(config, name, member, true),
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
  }),

  switchGroups: route('POST /groups/switch', {
    tag: 'groups',
    summary: 'Pause, drain or resume several groups in one change',
    role: 'operator',
    body: z.strictObject({
      groups: z
        .array(text)
        .min(1)
        .max(200)
        .describe(
          'Patterns of groups, including automatic groups that exist or are named in full. A pattern without a match is rejected.',
        ),
      to: z.enum(['pause', 'drain', 'resume']).describe('Action to apply to each group.'),
    }),
    answers: {
      200: changedSchema.extend({
        groups: z.array(z.string()).describe('Names of the affected groups.'),
      }),
    },
    hasEtag: true,
    takesIfMatch: true,
  }).servedBy(async ({ context, body: { groups: globs, to } }) => {
    const { pools } = await readDirectory(context.env);
    const known = pools.map(({ group }) => group).filter((name) => name.startsWith(AUTO_PREFIX));
    let groups: readonly string[] = [];
    const { version, warnings } = await changeConfig(context, {
      action: `groups ${globs.join(' ')}: ${to}`,
      next(config) {
        groups = meantBy(globs, config, known);
        return groups.reduce((next, name) => withGroupSwitched(next, name, EDITS[to]), config);
      },
    });
    return { status: 200, body: { version, groups: [...groups], warnings }, version };
  }),

  pauseEverything: route(
    'POST /pause',
    switchOfAll(
      'Pause the whole deployment',
      'No group starts calls until the deployment is resumed.',
    ),
  ).servedBy(({ context }) => switchEverything(context, true)),

  resumeEverything: route(
    'POST /resume',
    switchOfAll('Resume the whole deployment', 'Groups keep their own pauses.'),
  ).servedBy(({ context }) => switchEverything(context, false)),
};

function switchTo(verb: string, edit: Partial<Switches>) {
  return async (asked: {
    readonly context: AdminContext;
    readonly params: { readonly name: string };
    readonly body?: z.output<typeof untilSchema> | undefined;
  }) => {
    const {
      context,
      params: { name },
    } = asked;
    const time = lastingSwitches(name, spanOf(asked.body ?? {}), edit);
    if (await isUnconfigured(context, name)) {
      return switchAutomatic(context, name, verb, edit, time);
    }
    const switched = (config: Config): GroupConfig => ({ ...requireGroup(config, name), ...edit });
    const { reply } = await changeGroup(context, name, verb, switched, time);
    return { status: 200, ...reply } as const;
  };
}

/** Switches an automatic group. It need not be listed or have calls, because its name defines it. */
async function switchAutomatic(
  context: AdminContext,
  name: string,
  verb: string,
  edit: Partial<Switches>,
  time: TemporaryChange,
) {
  const { version, config, warnings } = await changeConfig(context, {
    action: `group ${name}: ${verb}${time.words}`,
    orders: time.orders,
    next: (present) => {
      const before = switchesOf(present, name);
      const upstreams = resolveUpstreams(present, BUILT_IN_UPSTREAMS);
      const isKnown = isHeld(before) || autoGroupNamed(name, upstreams) !== null;
      if (!isKnown) throw noAutoGroup(name);
      return withSwitches(present, name, { ...before, ...edit });
    },
  });
  const group = { name, ...switchesOf(config, name) };
  return { status: 200, body: { version, group, warnings }, version } as const;
}

function withMemberSwitched(
  config: Config,
  name: string,
  id: string,
  enabled: boolean,
): GroupConfig {
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

async function switchEverything(context: AdminContext, paused: boolean) {
  const { version, warnings } = await changeConfig(context, {
    action: paused ? 'pause everything' : 'resume everything',
    next: (config) => ({ ...config, paused }),
  });
  return { status: 200, body: { version, paused, warnings }, version } as const;
}

/** Returns the groups that patterns match. Throws if a pattern has no match. */
function meantBy(globs: readonly string[], config: Config, known: readonly string[]): string[] {
  const names = [...config.groups, ...config.auto_groups].map(({ name }) => name);
  const all = [...new Set([...names, ...known])];
  const upstreams = resolveUpstreams(config, BUILT_IN_UPSTREAMS);
  const meant = globs.map((glob) => {
    const found = all.filter(compileGlobs([glob]));
    // An automatic group need not have had calls, because its name defines it.
    return found.length === 0 && autoGroupNamed(glob, upstreams) !== null ? [glob] : found;
  });
  const errors = meant.flatMap((found, index) =>
    found.length > 0 ? [] : [{ path: `groups[${index}]`, message: 'matches no known group' }],
  );
  if (errors.length > 0) throw invalid(errors);
  return [...new Set(meant.flat())].toSorted();
}

function withGroupSwitched(config: Config, name: string, edit: Partial<Switches>): Config {
  const group = config.groups.find((one) => one.name === name);
  return group === undefined
    ? withSwitches(config, name, { ...switchesOf(config, name), ...edit })
    : { ...config, groups: withEntry(config.groups, { ...group, ...edit }) };
}
