import * as z from 'zod';
import { groupParams } from '../shapes.ts';
import { route } from '../route.ts';
import { ProblemError, type AdminContext } from '../context.ts';
import { requirePools } from '../pools.ts';
import { steadyClock } from '../../runtime/async.ts';
import { isolateId } from '../../runtime/deployment.ts';
import type { PlacedPool } from '../../routing/pool.ts';
import { type Directory, askAwake, forgetIdle, readDirectory } from '../../overview/pools.ts';
import {
  readAttention,
  mayWaitElsewhere,
  namesWithWaiting,
  statusOfGroups,
} from '../../overview/all-groups.ts';
import { attentionListSchema } from '../../contract/attention.ts';
import { ATTENTION_RULES } from '../../contract/status-words.ts';
import { groupStatusSchema, type GroupStatus } from '../../contract/group-status.ts';
import { isolateConfig } from '../../config/isolate-config.ts';
import { bounded } from '../../attention/attention.ts';

/** Current release, as in package.json. */
const RELEASE = '0.1.0';

export const STATUS_ROUTES = {
  getStatus: route('GET /status', {
    tag: 'status',
    summary: 'Get the current state of all groups',
    role: 'viewer',
    answers: {
      200: z.object({
        version: z.int().min(0).describe('Version of the configuration.'),
        paused: z.boolean().describe('Whether the whole deployment is paused.'),
        groups: z.array(groupStatusSchema).describe('All groups, configured ones first.'),
      }),
    },
  }).servedBy(async ({ context }) => {
    const directory = await readDirectory(context.env);
    const { version, config } = directory;
    const groups = await statusOfAll(context, directory);
    return { status: 200, body: { version, paused: config.paused, groups } };
  }),

  getGroupStatus: route('GET /groups/{name}/status', {
    tag: 'status',
    summary: 'Get the current state of a group, configured or automatic',
    role: 'viewer',
    params: groupParams,
    answers: { 200: groupStatusSchema },
    problems: [404],
  }).servedBy(async ({ context, params: { name } }) => {
    const directory = await readDirectory(context.env);
    const own = requirePools(directory, name);
    const others = mayWaitElsewhere(directory)
      ? directory.pools.filter((pool) => pool.group !== name)
      : [];
    const [group] = await statusOf(context, directory, [name], [...own, ...others]);
    if (group === undefined) throw new ProblemError(404, `No group \`${name}\` is known any more.`);
    return { status: 200, body: group };
  }),

  getAttention: route('GET /attention', {
    tag: 'status',
    summary: 'List the conditions that need attention, the worst first',
    description:
      'Lists groups that serve nothing, rejected calls, spent budgets, ejected members, missing secrets, configuration warnings and more. The dashboard, `headgate doctor`, `headgate status`, the webhook and the metric `headgate_attention` show the same list. docs/alerts.md describes each rule.',
    role: 'viewer',
    query: z.strictObject({
      rule: z.enum(ATTENTION_RULES).optional().describe('Return only entries of this rule.'),
    }),
    answers: { 200: attentionListSchema },
  }).servedBy(async ({ context, query: { rule } }) => {
    const { version, all } = await readAttention(context.env);
    const listed = bounded(rule === undefined ? all : all.filter((one) => one.rule === rule));
    const at = new Date(steadyClock.now()).toISOString();
    return { status: 200, body: { at, version, ...listed } };
  }),

  getIsolate: route('GET /isolate', {
    tag: 'status',
    summary: 'Get figures of the Worker isolate that responds',
    description:
      'The platform chooses the isolate, and usually another one for the next request. The figures start at 0 with the isolate.',
    role: 'viewer',
    answers: {
      200: z.object({
        id: z.string().describe('Random name of the isolate.'),
        release: z.string().describe('Release of Headgate.'),
        config_reads: z
          .int()
          .min(0)
          .describe('Requests that needed the configuration, mostly calls.'),
        config_waits: z
          .int()
          .min(0)
          .describe('Requests that waited for it because the copy was outdated or missing.'),
      }),
    },
  }).servedBy(() => {
    const { all, waited } = isolateConfig.reads;
    const body = {
      id: isolateId(),
      release: RELEASE,
      config_reads: all,
      config_waits: waited,
    };
    return Promise.resolve({ status: 200, body });
  }),
};

/** Returns the status of all known groups, configured ones first. */
export function statusOfAll(context: AdminContext, directory: Directory): Promise<GroupStatus[]> {
  return statusOf(context, directory, null, directory.pools);
}

/** @param names null for all groups */
async function statusOf(
  context: AdminContext,
  directory: Directory,
  names: readonly string[] | null,
  pools: readonly PlacedPool[],
): Promise<GroupStatus[]> {
  const asked = await askAwake(
    context.env,
    directory,
    pools,
    (pool) => pool.status(),
    ({ status }) => status,
  );
  context.executionCtx.waitUntil(forgetIdle(context.env, directory, asked));
  return statusOfGroups(directory, names ?? namesWithWaiting(directory, asked), asked);
}
