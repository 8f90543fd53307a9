import { verificationsOf, directoryOf, type Env } from '../../env.ts';
import type {
  GroupRpc,
  AcquireAnswer,
  AcquireRequest,
  GiveBackRequest,
  KeepPrefetchAnswer,
  PrefetchReport,
  RenewByIdAnswer,
  ResumeAnswer,
  ResumeRequest,
} from '../../contract/rpc/group-rpc.ts';
import { poolOf, sharedBy } from '../../routing/pool.ts';
import { isVerifiedLater, poolName } from '../../contract/pool-name.ts';
import type { Placement } from '../../routing/placement.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import type { ListedPool } from '../../contract/rpc/directory-rpc.ts';
import type { PoolStatus } from '../../contract/status.ts';
import type { VerificationRpc } from '../../contract/rpc/verification-rpc.ts';
import type { CallNotes, LeaseOutcome } from '../../core/words/outcome.ts';
import type { UpstreamSignal } from '../../core/words/signal.ts';
import type { Settlement } from '../../core/words/ticket.ts';
import { BoundedSet, BoundedMap } from '../../core/parts/bounded-map.ts';
import { steadyClock } from '../../runtime/clock.ts';
import { logEvent } from '../../runtime/log.ts';
import { within } from '../../runtime/async.ts';

/** The object of each pool: its own, or a shared one while the pool is not verified. */

/**
 * Returns a new stub of the pool on every call. A stub stays broken after an error, and Cloudflare's documentation says
 * to create a new one.
 */
export type PoolSource = () => CallPool;

export function poolSource(
  env: Env,
  placement: Placement,
  table: RoutingTable,
  mayBeUnverified = isUnverified(env, placement),
): PoolSource {
  const stubOf = ({ group, partition, config }: Placement): GroupRpc =>
    poolOf(env, group, partition, config);
  if (!mayBeUnverified) return () => stubOf(placement);
  const { group, partition } = placement;
  const pool = new UnverifiedPool({
    of: { group, partition },
    trials: () => verificationsOf(env),
    find: () => ownOrShared(env, table, placement),
    stubOf,
  });
  return () => pool;
}

/**
 * The same for a lease that is held by its id. Its pool may have been unverified at the grant. In a group with too many
 * partitions it was moved to a shared pool, and the lease still names its own.
 */
export function poolSourceOfHeld(env: Env, placement: Placement, table: RoutingTable): PoolSource {
  const isFull = table.snapshot.fullGroups.includes(placement.group);
  const mayShare = isFull && env.TRIALS !== undefined && isVerifiedLater(placement);
  return poolSource(env, placement, table, mayShare || isUnverified(env, placement));
}

export function isUnverified(env: Env, placement: Placement): boolean {
  return env.TRIALS !== undefined && isVerifiedLater(placement) && !isKnownVerified(placement);
}

type CallPool = Pick<
  GroupRpc,
  | 'acquire'
  | 'cancel'
  | 'release'
  | 'report'
  | 'resume'
  | 'renew'
  | 'keepPrefetch'
  | 'giveBack'
  | 'status'
>;

interface UnverifiedPoolAccess {
  readonly of: ListedPool;
  readonly trials: () => VerificationRpc;
  /** Where the pool is once it has its own object. */
  readonly find: () => Promise<Placement>;
  readonly stubOf: (at: Placement) => GroupRpc;
}

/** A pool that counts as unverified until the shared object reports otherwise. From then on its own object is asked. */
class UnverifiedPool implements CallPool {
  readonly #ways: UnverifiedPoolAccess;
  #own: Placement | null = null;

  constructor(ways: UnverifiedPoolAccess) {
    this.#ways = ways;
  }

  async acquire(request: AcquireRequest): Promise<AcquireAnswer> {
    if (this.#own === null) {
      const answer = await this.#ways.trials().acquire(request);
      if (answer.kind !== 'proved') return answer;
    }
    const { group, partition } = await this.#findOwn();
    return this.#stub().acquire({ ...request, group, partition });
  }

  async resume(request: ResumeRequest): Promise<ResumeAnswer> {
    if (this.#own === null) {
      const answer = await this.#ways.trials().resume(request);
      if (answer.kind !== 'proved') return answer;
    }
    const { group, partition } = await this.#findOwn();
    return this.#stub().resume({ ...request, group, partition });
  }

  async renew(
    leaseId: string,
    status: number | null,
    held: ResumeRequest,
  ): Promise<RenewByIdAnswer> {
    if (this.#own === null) {
      const answer = await this.#ways.trials().renew(leaseId, status, held);
      if (answer.kind !== 'proved') return answer;
    }
    const { group, partition } = await this.#findOwn();
    return this.#stub().renew(leaseId, status, { ...held, group, partition });
  }

  cancel(ticketId: string): Promise<void> {
    if (this.#own !== null) return this.#stub().cancel(ticketId);
    return this.#ways.trials().cancel(this.#ways.of, ticketId);
  }

  release(
    leaseId: string,
    outcome: LeaseOutcome,
    status: number | null,
    settlement?: Settlement,
    held?: ResumeRequest,
    notes?: CallNotes,
  ): Promise<void> {
    const { of, trials: verifications } = this.#ways;
    const end = [leaseId, outcome, status, settlement, held, notes] as const;
    return this.#own === null ? verifications().release(of, ...end) : this.#stub().release(...end);
  }

  report(
    leaseId: string,
    signal: UpstreamSignal,
    isRepeat: boolean,
    held?: ResumeRequest,
  ): Promise<void> {
    const { of, trials } = this.#ways;
    const report = [leaseId, signal, isRepeat, held] as const;
    return this.#own === null ? trials().report(of, ...report) : this.#stub().report(...report);
  }

  /** Nothing is prefetched from a pool without storage. */
  keepPrefetch(report: PrefetchReport): Promise<KeepPrefetchAnswer> {
    return this.#stub().keepPrefetch(report);
  }

  giveBack(request: GiveBackRequest): Promise<void> {
    return this.#stub().giveBack(request);
  }

  status(): Promise<PoolStatus> {
    if (this.#own !== null) return this.#stub().status();
    return this.#ways.trials().status(this.#ways.of);
  }

  async #findOwn(): Promise<Placement> {
    if (this.#own === null) {
      const { of, find } = this.#ways;
      noteVerified(of);
      this.#own ??= await find();
    }
    return this.#own;
  }

  #stub(): GroupRpc {
    const { of, stubOf } = this.#ways;
    if (this.#own === null) throw new Error(`the pool of group ${of.group} is unverified`);
    return stubOf(this.#own);
  }
}

/** Maximum pools that this isolate remembers as verified. For others it asks again. */
const VERIFIED_MAX = 10_000;

const verified = new BoundedSet<string>(VERIFIED_MAX);

type PlacementPool = Pick<Placement, 'group' | 'partition'>;

/** Returns whether the key of a pool is verified, as far as this isolate knows. */
function isKnownVerified({ group, partition }: PlacementPool): boolean {
  return verified.has(poolName(group, partition));
}

export function noteVerified({ group, partition }: PlacementPool): void {
  verified.add(poolName(group, partition));
}

/**
 * How long an answer is used. A pool must be idle for far longer before the directory may change its answer, so no
 * caller sends calls to both.
 */
const REMEMBERED_MS = 60_000;

/** Maximum answers that this isolate remembers. The oldest are dropped first. */
const REMEMBERED_MAX = 5_000;

const ANSWER_MS_MAX = 1_000;

/** The partition for each pool's calls. It holds plain data only, because requests may not share promises. */
const answers = new BoundedMap<string, { readonly partition: string; readonly until: number }>(
  REMEMBERED_MAX,
);

/**
 * The placement of a call, or that of the pool that its partition shares with others because its group has too many. It
 * costs nothing unless the group is full, and then an occasional round trip.
 */
export async function ownOrShared(
  env: Env,
  { snapshot }: RoutingTable,
  placement: Placement,
): Promise<Placement> {
  const { group, partition } = placement;
  if (partition === null || !snapshot.fullGroups.includes(group)) return placement;
  const name = poolName(group, partition);
  const known = answers.get(name);
  if (known !== undefined && steadyClock.now() < known.until) {
    return { ...placement, partition: known.partition };
  }
  try {
    const share = directoryOf(env).share(group, partition);
    const answered = sharedBy(partition, await within(ANSWER_MS_MAX, share));
    remember(name, answered);
    return { ...placement, partition: answered };
  } catch (error) {
    logEvent('directory_unreachable', { error: String(error) });
    // An old answer is better than none. Without any, an extra pool is better than a rejection.
    return known === undefined ? placement : { ...placement, partition: known.partition };
  }
}

function remember(name: string, partition: string): void {
  answers.set(name, { partition, until: steadyClock.now() + REMEMBERED_MS });
}
