import {
  isHeld,
  switchesOf,
  withSwitches,
  autoGroupNamed,
  type Switches,
} from '../routing/auto-groups.ts';
import { groupSchema } from '../contract/config/group.ts';
import type { Config, GroupConfig } from '../contract/config/config.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import type { AdminContext, AdminApp } from './context.ts';
import { changeConfig, type Edit } from './change.ts';
import { entryOfAutomatic } from './configure-automatic.ts';
import { mergePatch } from './merge-patch.ts';
import { noAutoGroup, noGroup } from './pools.ts';
import { ProblemError } from './problem.ts';
import { pageByName } from './pages.ts';
import { check, invalid, madeOr, serve } from './serve.ts';
import { currentSnapshot } from './snapshot.ts';
import { lasting, lastingSwitches, namedIn, spanOf, type TemporaryChange } from './temporary.ts';
import type { untilSchema } from '../contract/admin/until.ts';
import type * as z from 'zod';

export function addGroupRoutes(app: AdminApp): void {
  serve(app, 'listGroups', async ({ context, query }) => {
    const { version, config } = await currentSnapshot(context.env);
    const { items: groups, next_cursor } = pageByName(config.groups, ({ name }) => name, query);
    return { status: 200, body: { version, groups, next_cursor }, version };
  });

  serve(app, 'getGroup', async ({ context, params }) => {
    const { version, config } = await currentSnapshot(context.env);
    return { status: 200, body: requireGroup(config, params.name), version };
  });

  serve(app, 'putGroup', async ({ context, params: { name }, query, body }) => {
    const { isNew, reply } = await changeGroup(
      context,
      name,
      'put',
      putting(name, body),
      lasting(name, spanOf(query), []),
    );
    return madeOr(isNew, reply);
  });

  serve(app, 'patchGroup', async ({ context, params: { name }, query, body }) => {
    const entry = (await isUnconfigured(context, name))
      ? await entryOfAutomatic(context, name)
      : undefined;
    const { reply } = await changeGroup(
      context,
      name,
      'patch',
      patching(name, body, entry),
      lasting(name, spanOf(query), namedIn(body), entry),
    );
    return { status: 200, ...reply };
  });

  serve(app, 'deleteGroup', async ({ context, params: { name } }) => {
    const { version, warnings } = await changeConfig(context, {
      action: `group ${name}: delete`,
      next: (config) => {
        const gone = requireGroup(config, name);
        return { ...config, groups: config.groups.filter((group) => group !== gone) };
      },
    });
    return { status: 200, body: { version, warnings }, version };
  });

  serve(app, 'configureGroup', async ({ context, params: { name } }) => {
    if (!(await isUnconfigured(context, name))) {
      requireGroup((await currentSnapshot(context.env)).config, name);
      throw new ProblemError(409, `Group \`${name}\` already has an entry. Change it with PATCH.`);
    }
    const entry = await entryOfAutomatic(context, name);
    const { reply } = await changeGroup(context, name, 'configure', () => entry);
    return { status: 201, ...reply };
  });

  // Operators use these in a hurry, also for automatic groups.
  serve(app, 'pauseGroup', switchTo('pause', { paused: true }));
  serve(app, 'drainGroup', switchTo('drain', { draining: true }));
  serve(app, 'resumeGroup', switchTo('resume', { paused: false, draining: false }));
}

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

/** Returns whether a name is that of an automatic group without an entry in `groups`. */
async function isUnconfigured({ env }: AdminContext, name: string): Promise<boolean> {
  if (!name.startsWith(AUTO_PREFIX)) return false;
  const { config } = await currentSnapshot(env);
  return !config.groups.some((group) => group.name === name);
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

/** Returns the group that a `PUT` defines. */
export function putting(name: string, document: unknown): () => GroupConfig {
  return () => parseGroup(name, document);
}

/**
 * Returns the group that a `PATCH` leads to.
 *
 * @param entry new entry of an automatic group. If absent, the group must be configured.
 */
export function patching(
  name: string,
  patch: unknown,
  entry?: GroupConfig,
): (config: Config) => GroupConfig {
  return (config) => parseGroup(name, mergePatch(entry ?? requireGroup(config, name), patch));
}

export function requireGroup(config: Config, name: string): GroupConfig {
  const group = config.groups.find((candidate) => candidate.name === name);
  if (group === undefined) throw noGroup(name);
  return group;
}

/** Creates an edit of one group. Paths of errors refer to the document of that group. */
export function groupEdit(
  name: string,
  verb: string,
  edited: (config: Config) => GroupConfig,
): Edit {
  return {
    action: `group ${name}: ${verb}`,
    next: (present) => ({
      ...present,
      groups: withGroup(present.groups, edited(present)),
      // The new entry of an automatic group contains its switches.
      auto_groups: present.auto_groups.filter((automatic) => automatic.name !== name),
    }),
    pathOf: (path, present) => {
      const index = present.groups.findIndex((group) => group.name === name);
      const prefix = `groups[${index === -1 ? present.groups.length : index}].`;
      return path.startsWith(prefix) ? path.slice(prefix.length) : path;
    },
  };
}

export async function changeGroup(
  context: AdminContext,
  name: string,
  verb: string,
  edited: (config: Config) => GroupConfig,
  time?: TemporaryChange,
) {
  const made = groupEdit(name, verb + (time?.words ?? ''), edited);
  const edit = time === undefined ? made : { ...made, orders: time.orders };
  const { version, before, config, warnings } = await changeConfig(context, edit);
  const reply = { body: { version, group: requireGroup(config, name), warnings }, version };
  const isNew = !before.groups.some((group) => group.name === name);
  return { reply, isNew, isChanged: config !== before };
}

function withGroup(groups: readonly GroupConfig[], group: GroupConfig): GroupConfig[] {
  const index = groups.findIndex((candidate) => candidate.name === group.name);
  return index === -1 ? [...groups, group] : groups.with(index, group);
}

/** Validates one group separately, so that paths of errors refer to the request. */
function parseGroup(name: string, document: unknown): GroupConfig {
  const group = check(groupSchema, { name, ...Object(document) });
  if (group.name !== name) {
    const message = `must be \`${name}\`, as in the path. A group cannot be renamed`;
    throw invalid([{ path: 'name', message }]);
  }
  return group;
}
