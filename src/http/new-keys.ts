import { steadyClock } from '../contract/steady-clock.ts';
import { trialsOf } from '../contract/env.ts';
import { FailedAttempts } from '../contract/failed-attempts.ts';
import { poolOf } from '../contract/pool.ts';
import { isProvedLater } from '../contract/pool-name.ts';
import type { Placement } from '../routing/placement.ts';
import { within } from '../upstream/within.ts';
import { addressOf } from './address.ts';
import type { ProxyCall } from './call.ts';
import { pause } from './waiting.ts';

/** Keys of one address that were refused within a minute and cost nothing: people mistype, and keys are revoked. */
const FREE = 10;

/** From then on a key that had no success waits longer each time, up to this. */
const DELAY_MS_MIN = 100;
const DELAY_MS_MAX = 1_000;

/** A pool that has not said by then whether its key is good has not said so. */
const ANSWER_MS_MAX = 1_000;

/** Keys that this isolate knows as good; the oldest go first, and are asked for again. */
const GOOD_MAX = 10_000;

const refused = new FailedAttempts();
const good = new Set<string>();

type Asked = Pick<ProxyCall, 'request' | 'env'>;

/**
 * Makes a key that had no success wait where its address sends keys that are refused. One that had some is
 * served at once, whoever else comes from there.
 */
export async function delayNewKey(
  { request, env }: Asked,
  key: string,
  placements: () => readonly Placement[],
): Promise<void> {
  const delayMs = delayFor(refused.recent(addressFor({ request, env }), steadyClock.now()));
  if (delayMs === 0 || good.has(key)) return;
  if (await isProved(env, placements())) return noteGood(key);
  await pauseFor(request, delayMs);
}

/** Notes what the upstream said to a key. Lists of models are there for everybody: they prove nothing. */
export function noteKeyAnswer(
  asked: Asked,
  key: string,
  status: number,
  isGenerating: boolean,
): void {
  if (status >= 200 && status <= 299 && isGenerating) noteGood(key);
  else if ((status === 401 || status === 403) && !good.has(key)) countRefused(asked);
}

/** The same for a gateway key that nobody knows, which waits before it is told so. */
export async function delayUnknownKey(asked: Asked): Promise<void> {
  const delayMs = delayFor(countRefused(asked));
  if (delayMs > 0) await pauseFor(asked.request, delayMs);
}

function countRefused(asked: Asked): number {
  return refused.count(addressFor(asked), steadyClock.now());
}

function addressFor({ request, env }: Asked): string {
  return addressOf(env, request);
}

function delayFor(failures: number): number {
  if (failures <= FREE) return 0;
  return Math.min(DELAY_MS_MAX, DELAY_MS_MIN * 2 ** (failures - FREE - 1));
}

async function pauseFor({ signal }: Request, ms: number): Promise<void> {
  const { promise: left, resolve } = Promise.withResolvers<void>();
  signal.addEventListener('abort', () => resolve(), { once: true });
  await Promise.race([pause(ms), left]);
}

function noteGood(key: string): void {
  if (good.has(key)) return;
  const [oldest] = good;
  if (good.size >= GOOD_MAX && oldest !== undefined) good.delete(oldest);
  good.add(key);
}

/** Whether the key had a success that another isolate, or an earlier process, knows of. */
async function isProved(env: Asked['env'], placements: readonly Placement[]): Promise<boolean> {
  const own = placements.find(isProvedLater);
  if (own === undefined) return false;
  const { group, partition } = own;
  try {
    const asking =
      env.TRIALS === undefined
        ? poolOf(env, group, partition, null).isProved()
        : trialsOf(env).isProved({ group, partition });
    return await within(ANSWER_MS_MAX, asking);
  } catch {
    // Also from an object that does not know the question yet.
    return false;
  }
}
