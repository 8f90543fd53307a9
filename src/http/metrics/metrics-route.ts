import type { Context } from 'hono';
import { directoryOf, type Env } from '../../env.ts';
import type { RefusalTotal } from '../../contract/reasons.ts';
import {
  howToSet,
  readSecret,
  secretFault,
  isSameHash,
  secretHash,
} from '../../runtime/secrets.ts';
import { POOL_IDLE_MS, type GroupRpc } from '../../contract/rpc/group-rpc.ts';
import type { PoolMetrics } from '../../contract/rpc/feed-rpc.ts';
import { ATTENTION_RULES } from '../../contract/status-words.ts';
import { attentionFrom } from '../../overview/all-groups.ts';
import { askAwake, readDirectory, type Directory, type PoolReply } from '../../overview/pools.ts';
import { refuseBlocked, slowDown } from '../../admin/access/attempts.ts';
import { ProblemError, problemResponse } from '../../admin/problem.ts';
import { Exposition } from './exposition.ts';
import { ATTENTION, CONFIG_VERSION, POOLS, POOLS_LEFT_OUT, REFUSED } from './families.ts';
import { addPools } from './pool-samples.ts';

/** Handles `GET /metrics`: all counts in the text format of Prometheus. */
export async function metrics(context: Context<{ Bindings: Env }>): Promise<Response> {
  const { env } = context;
  try {
    await requireToken(context);
    const directory = await readDirectory(env);
    const { pools, version } = directory;
    const ask = (pool: GroupRpc): Promise<PoolMetrics> => pool.metrics();
    const asked = await askAwake(env, directory, pools, ask, (made) => made);
    const exposition = new Exposition();
    exposition.add(CONFIG_VERSION, {}, version);
    exposition.add(POOLS, {}, asked.length);
    exposition.add(POOLS_LEFT_OUT, {}, pools.length - asked.length);
    await addAttention(exposition, env, directory, asked);
    addPools(exposition, asked.filter(isShown), directory.config);
    for (const total of await directoryOf(env).refusalTotals()) addRefusals(exposition, total);
    return exposition.toResponse();
  } catch (error) {
    return problemResponse(error);
  }
}

/**
 * Adds the rejected calls with the same labels. Unknown facts get an empty label, which Prometheus treats as absent.
 */
function addRefusals(to: Exposition, { count, reason, ...facts }: RefusalTotal): void {
  const { key, team, group, upstream } = facts;
  const labels = { reason, key, team, group, upstream };
  const texts = Object.entries(labels).map(([name, value]) => [name, value ?? ''] as const);
  to.add(REFUSED, Object.fromEntries(texts), count);
}

/** Adds the number of entries of each rule, including 0, from the same list as `GET /admin/api/attention`. */
async function addAttention(
  exposition: Exposition,
  env: Env,
  directory: Directory,
  asked: readonly PoolReply<PoolMetrics>[],
): Promise<void> {
  const replies = asked.map((one) =>
    'error' in one ? one : { pool: one.pool, answer: one.answer.status },
  );
  const all = await attentionFrom(env, directory, replies);
  for (const rule of ATTENTION_RULES) {
    exposition.add(ATTENTION, { rule }, all.filter((one) => one.rule === rule).length);
  }
}

/** Omits idle partitions. They leave the list in time, and need no series until then. */
function isShown(one: PoolReply<PoolMetrics>): boolean {
  return 'error' in one || one.pool.partition === null || one.answer.status.idle_ms < POOL_IDLE_MS;
}

/**
 * Accepts `METRICS_TOKEN` and `ADMIN_TOKEN`. The route is disabled if neither is set. Failed attempts are slowed down
 * as in the admin API, because the token could otherwise be guessed here without a limit.
 */
async function requireToken(context: Context<{ Bindings: Env }>): Promise<void> {
  const { env, req } = context;
  const expected = ['METRICS_TOKEN', 'ADMIN_TOKEN']
    .map((name) => readSecret(env, name))
    .filter((token) => token !== null);
  if (expected.length === 0) {
    throw new ProblemError(
      403,
      `Metrics are disabled: the secret \`METRICS_TOKEN\` ${secretFault(env, 'METRICS_TOKEN')}. Give Prometheus a token as \`authorization: { credentials: … }\`, and set it here: ${howToSet(env, 'METRICS_TOKEN', req.url)}`,
    );
  }
  refuseBlocked(context);
  const given = /^bearer +(.+)$/i.exec(req.header('authorization') ?? '')?.[1]?.trim() ?? '';
  const [hash = '', ...hashes] = await Promise.all([given, ...expected].map(secretHash));
  // All tokens are compared, so that the response time does not reveal which one matches.
  if (hashes.filter((each) => isSameHash(hash, each)).length > 0) return;
  if (given !== '') await slowDown(context);
  throw new ProblemError(401, 'Send `Authorization: Bearer <METRICS_TOKEN>`.', {
    headers: { 'www-authenticate': 'Bearer realm="headgate-metrics"' },
  });
}
