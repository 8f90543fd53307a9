import * as z from 'zod';
import { type TemporaryChange, lasting, namedIn, spanOf, untilQuery } from '../temporary.ts';
import {
  changedGroupSchema,
  changedSchema,
  groupParams,
  mergePatchSchema,
  pageByName,
  pageOf,
  pageQuery,
} from '../shapes.ts';
import { check, madeOr, route } from '../route.ts';
import { ProblemError, type AdminContext } from '../context.ts';
import { noAutoGroup, noGroup, poolsOf } from '../pools.ts';
import {
  type Edit,
  changeConfig,
  currentSnapshot,
  inEntry,
  mergePatch,
  requireSameName,
  withEntry,
} from '../change.ts';
import { resolveUpstreams } from '../../routing/upstreams.ts';
import { autoGroupNamed } from '../../routing/implied-groups.ts';
import { BUILT_IN_UPSTREAMS } from '../../providers/catalog.ts';
import { askPools, readDirectory } from '../../overview/pools.ts';
import { AUTO_PREFIX } from '../../contract/pool-name.ts';
import { groupSchema } from '../../contract/config/group.ts';
import type { Config, GroupConfig } from '../../contract/config/config.ts';

/** A group as the body of `PUT`. The name is in the path. */
export const groupDocumentSchema = groupSchema
  .extend({ name: z.string().optional().describe('If present, the same as in the path.') })
  .describe('A group. Omitted fields have their defaults.');

export const GROUP_ROUTES = {
  listGroups: route('GET /groups', {
    tag: 'groups',
    summary: 'List configured groups by name, with all defaults',
    role: 'viewer',
    query: pageQuery,
    answers: { 200: pageOf('groups', groupSchema) },
    hasEtag: true,
  }).servedBy(async ({ context, query }) => {
    const { version, config } = await currentSnapshot(context.env);
    const { items: groups, next_cursor } = pageByName(config.groups, ({ name }) => name, query);
    return { status: 200, body: { version, groups, next_cursor }, version };
  }),

  getGroup: route('GET /groups/{name}', {
    tag: 'groups',
    summary: 'Get a configured group with all defaults',
    role: 'viewer',
    params: groupParams,
    answers: { 200: groupSchema },
    hasEtag: true,
    problems: [404],
  }).servedBy(async ({ context, params }) => {
    const { version, config } = await currentSnapshot(context.env);
    return { status: 200, body: requireGroup(config, params.name), version };
  }),

  putGroup: route('PUT /groups/{name}', {
    tag: 'groups',
    summary: 'Create or replace a group',
    description:
      'Idempotent: the same document again creates no new version. With `until` or `for_s`, the changed fields revert automatically.',
    role: 'admin',
    params: groupParams,
    query: untilQuery,
    body: groupDocumentSchema,
    answers: { 200: changedGroupSchema, 201: changedGroupSchema },
    hasEtag: true,
    takesIfMatch: true,
  }).servedBy(async ({ context, params: { name }, query, body }) => {
    const { isNew, reply } = await changeGroup(
      context,
      name,
      'put',
      putting(name, body),
      lasting(name, spanOf(query), []),
    );
    return madeOr(isNew, reply);
  }),

  patchGroup: route('PATCH /groups/{name}', {
    tag: 'groups',
    summary: 'Change fields of a group',
    description:
      'A JSON merge patch (RFC 7396) of a `Group`. null restores the default of a field. The result must be a valid group. Patching an automatic group creates an entry for it, as `configure` does. With `until` or `for_s`, the changed fields revert automatically. For fields that already have the given value, only the end time changes.',
    role: 'admin',
    params: groupParams,
    query: untilQuery,
    body: mergePatchSchema,
    answers: { 200: changedGroupSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  }).servedBy(async ({ context, params: { name }, query, body }) => {
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
  }),

  deleteGroup: route('DELETE /groups/{name}', {
    tag: 'groups',
    summary: 'Remove a group',
    description: 'Calls that hold its slots finish.',
    role: 'admin',
    params: groupParams,
    answers: { 200: changedSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  }).servedBy(async ({ context, params: { name } }) => {
    const { version, warnings } = await changeConfig(context, {
      action: `group ${name}: delete`,
      next: (config) => {
        const gone = requireGroup(config, name);
        return { ...config, groups: config.groups.filter((group) => group !== gone) };
      },
    });
    return { status: 200, body: { version, warnings }, version };
  }),

  configureGroup: route('POST /groups/{name}/configure', {
    tag: 'groups',
    summary: 'Create an entry for an automatic group, with its current limit',
    description:
      'The group can then be changed like a configured one. It keeps its name, its calls, and the state of its pools. `DELETE` makes it automatic again.',
    role: 'admin',
    params: groupParams,
    answers: { 201: changedGroupSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404, 409],
  }).servedBy(async ({ context, params: { name } }) => {
    if (!(await isUnconfigured(context, name))) {
      requireGroup((await currentSnapshot(context.env)).config, name);
      throw new ProblemError(409, `Group \`${name}\` already has an entry. Change it with PATCH.`);
    }
    const entry = await entryOfAutomatic(context, name);
    const { reply } = await changeGroup(context, name, 'configure', () => entry);
    return { status: 201, ...reply };
  }),
};

/**
 * Returns the entry in `groups` that leaves an automatic group unchanged, with its switches and its current limit. The
 * limit is the largest of its pools, because what the others have learned still applies to them. Throws if there is no
 * such group.
 */
export async function entryOfAutomatic({ env }: AdminContext, name: string): Promise<GroupConfig> {
  const directory = await readDirectory(env);
  const { config } = directory;
  const group = autoGroupNamed(name, resolveUpstreams(config, BUILT_IN_UPSTREAMS));
  if (group === null) throw noAutoGroup(name);
  const asked = await askPools(env, config, poolsOf(directory, name), (pool) => pool.status());
  const limits = asked.flatMap((one) =>
    'answer' in one ? (one.answer.limit.effective ?? []) : [],
  );
  const set = config.auto_groups.find((each) => each.name === name);
  return groupSchema.parse({
    ...set,
    name,
    limits: { max_concurrency: Math.max(group.assumed.slotsMax, ...limits) },
  });
}

/** Returns whether a name is that of an automatic group without an entry in `groups`. */
export async function isUnconfigured({ env }: AdminContext, name: string): Promise<boolean> {
  if (!name.startsWith(AUTO_PREFIX)) return false;
  const { config } = await currentSnapshot(env);
  return !config.groups.some((group) => group.name === name);
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
      groups: withEntry(present.groups, edited(present)),
      // The new entry of an automatic group contains its switches.
      auto_groups: present.auto_groups.filter((automatic) => automatic.name !== name),
    }),
    pathOf: inEntry('groups', name),
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

/** Validates one group separately, so that paths of errors refer to the request. */
function parseGroup(name: string, document: unknown): GroupConfig {
  const group = check(groupSchema, { name, ...Object(document) });
  requireSameName(group, name, 'A group');
  return group;
}
