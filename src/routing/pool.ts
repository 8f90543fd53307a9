import type { GroupConfig } from '../contract/config/config.ts';
import type { ListedPool } from '../contract/rpc/directory-rpc.ts';
import {
  directoryOf,
  jurisdictionOf,
  keptIn,
  verificationsOf,
  type Env,
  type LocationVariables,
} from '../env.ts';
import type {
  AcquireAnswer,
  AcquireRequest,
  GiveBackRequest,
  GroupRpc,
  KeepPrefetchAnswer,
  PrefetchReport,
  RenewByIdAnswer,
  ResumeAnswer,
  ResumeRequest,
} from '../contract/rpc/group-rpc.ts';
import type { VerificationRpc } from '../contract/rpc/lease-objects-rpc.ts';
import type { PoolStatus } from '../contract/status.ts';
import type { CallNotes, LeaseOutcome } from '../core/words/outcome.ts';
import type { UpstreamSignal } from '../core/words/signal.ts';
import type { Settlement } from '../core/words/ticket.ts';
import { AUTO_PREFIX, poolName, OVERFLOW_PARTITION } from '../contract/pool-name.ts';
import { definedGroup, kindOfLimits, type GroupsAndLimits } from './implied-groups.ts';
import { hasMembers, membersOf } from './members.ts';

/** A pool: the partition that a call belongs to, the pool's name and object, and what decides which calls it gets. */

/** Location of the objects of a group, as in `GroupConfig`. Automatic groups have none (null). */
export type PoolLocation = Pick<GroupConfig, 'location' | 'jurisdiction'>;

/**
 * A listed pool with the jurisdiction in which it was created. The same name in another jurisdiction is another object,
 * so a pool of a deleted group can be found only with its jurisdiction. Absent or null means that of the deployment, if
 * any.
 */
export interface PlacedPool extends ListedPool {
  readonly jurisdiction?: GroupConfig['jurisdiction'];
}

/**
 * Returns a stub of the object of a group (partition null) or of one of its partitions. `place` is the configuration of
 * the group, or null for an automatic group. Each call creates a new stub, because a stub stops working after a reset
 * of its object.
 */
export function poolOf(
  env: Pick<Env, 'GROUPS'> & LocationVariables,
  group: string,
  partition: string | null,
  place: PoolLocation | null,
): GroupRpc {
  const namespace = keptIn(env.GROUPS, place?.jurisdiction ?? jurisdictionOf(env));
  const name = poolName(group, partition);
  const location = place?.location ?? null;
  return location === null
    ? namespace.getByName(name)
    : namespace.getByName(name, { locationHint: location });
}

type PoolEnv = Pick<Env, 'GROUPS' | 'TRIALS'> & LocationVariables;

/** What calls, runs and leases ask of a pool. */
export type CallPool = Pick<
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

/** Where a pool has its own object. */
interface OwnPool extends ListedPool {
  /** As in `poolOf`. */
  readonly config: PoolLocation | null;
}

/** A pool that counts as unverified until the shared object reports otherwise. From then on its own object is asked. */
export class UnverifiedPool implements CallPool {
  readonly #env: PoolEnv;
  readonly #of: ListedPool;
  readonly #find: () => Promise<OwnPool>;
  #own: OwnPool | null = null;

  /** @param find returns where the pool is once it has its own object */
  constructor(env: PoolEnv, of: ListedPool, find: () => Promise<OwnPool>) {
    this.#env = env;
    this.#of = of;
    this.#find = find;
  }

  async acquire(request: AcquireRequest): Promise<AcquireAnswer> {
    if (this.#own === null) {
      const answer = await this.#shared.acquire(request);
      if (answer.kind !== 'proved') return answer;
    }
    const { group, partition } = await this.#findOwn();
    return this.#stub().acquire({ ...request, group, partition });
  }

  async resume(request: ResumeRequest): Promise<ResumeAnswer> {
    if (this.#own === null) {
      const answer = await this.#shared.resume(request);
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
      const answer = await this.#shared.renew(leaseId, status, held);
      if (answer.kind !== 'proved') return answer;
    }
    const { group, partition } = await this.#findOwn();
    return this.#stub().renew(leaseId, status, { ...held, group, partition });
  }

  cancel(ticketId: string): Promise<void> {
    if (this.#own !== null) return this.#stub().cancel(ticketId);
    return this.#shared.cancel(this.#of, ticketId);
  }

  release(
    leaseId: string,
    outcome: LeaseOutcome,
    status: number | null,
    settlement?: Settlement,
    held?: ResumeRequest,
    notes?: CallNotes,
  ): Promise<void> {
    const end = [leaseId, outcome, status, settlement, held, notes] as const;
    return this.#own === null
      ? this.#shared.release(this.#of, ...end)
      : this.#stub().release(...end);
  }

  report(
    leaseId: string,
    signal: UpstreamSignal,
    isRepeat: boolean,
    held?: ResumeRequest,
  ): Promise<void> {
    const report = [leaseId, signal, isRepeat, held] as const;
    return this.#own === null
      ? this.#shared.report(this.#of, ...report)
      : this.#stub().report(...report);
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
    return this.#shared.status(this.#of);
  }

  get #shared(): VerificationRpc {
    return verificationsOf(this.#env);
  }

  async #findOwn(): Promise<OwnPool> {
    this.#own ??= await this.#find();
    return this.#own;
  }

  #stub(): GroupRpc {
    if (this.#own === null) throw new Error(`the pool of group ${this.#of.group} is unverified`);
    const { group, partition, config } = this.#own;
    return poolOf(this.#env, group, partition, config);
  }
}

/** Asks the directory which partition takes the calls of a pool. Its group may have too many. */
export async function partitionOfCalls<Own extends string | null>(
  env: Parameters<typeof directoryOf>[0],
  { group, partition }: ListedPool & { readonly partition: Own },
): Promise<string | Own> {
  if (partition === null) return partition;
  return sharedBy(partition, await directoryOf(env).share(group, partition));
}

/**
 * Whether a configuration may send calls to a pool. A pool only waits for its leases to end if its group was deleted,
 * was moved to another jurisdiction or is split differently.
 */
export function takesCalls(pool: PlacedPool, config: GroupsAndLimits): boolean {
  if (pool.group.startsWith(AUTO_PREFIX)) return true;
  if (kindOfLimits(pool.group) !== null) return definedGroup(config, pool.group) !== undefined;
  const group = config.groups.find((candidate) => candidate.name === pool.group);
  return (
    group !== undefined &&
    // Without members, calls with their own keys have no separate partitions.
    (hasMembers(group) || !isOwnPartition(pool.partition)) &&
    (group.partition_by.length === 0) === (splitPartition(pool.partition) === null) &&
    group.jurisdiction === (pool.jurisdiction ?? null)
  );
}

/** Returns the pool of a group without partitions. null if each partition has its own. */
export function ownPool(group: GroupConfig): PlacedPool | null {
  if (group.partition_by.length > 0) return null;
  return { group: group.name, partition: null, jurisdiction: group.jurisdiction };
}

/** Returns a key for a pool that also distinguishes pools of the same name in different jurisdictions. */
export function poolKey(pool: PlacedPool): string {
  return JSON.stringify([pool.group, pool.partition, pool.jurisdiction ?? null]);
}

/**
 * Returns the settings that decide which calls a group takes, into which pool, and where a Worker sends them. Waiters
 * are placed again when they change, because a grant has only the id of a member.
 */
export function callRoute(group: GroupConfig): object {
  const { match, partition_by, jurisdiction } = group;
  const places = membersOf(group).map(({ config: { name, upstream, secret, models } }) => ({
    name,
    upstream,
    secret,
    models,
  }));
  return { match, partition_by, jurisdiction, members: places };
}

/** Values by which a group can be split. null counts as the value `NO_VALUE`. */
interface PartitionFacts {
  /** Fingerprint of the key that the upstream receives. */
  readonly keyFingerprint: string | null;
  readonly caller: string;
  readonly model: string | null;
  readonly upstream: { readonly id: string; readonly baseUrl: string };
  header(name: string): string | null;
}

/** Maximum used characters of a value. Clients choose some of them. */
const VALUE_LENGTH_MAX = 100;

/**
 * Maximum length of an encoded value. Three of them and a group's name stay below the 1,024 bytes up to which a Durable
 * Object can read its own name.
 */
const ENCODED_LENGTH_MAX = 300;

/** Headers whose value is a credential, which must not become part of a stored and visible name. */
export const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set([
  'authorization',
  'proxy-authorization',
  'x-api-key',
  'x-goog-api-key',
  'api-key',
  'headgate-key',
  'cookie',
]);

/** Returns the partition of a call: the values of `partition_by`, URI-encoded. null if the group is not split. */
export function partitionOf(
  partitionBy: GroupConfig['partition_by'],
  facts: PartitionFacts,
): string | null {
  if (partitionBy.length === 0) return null;
  return partitionBy.map((by) => encode(valueOf(by, facts))).join(',');
}

function valueOf(by: GroupConfig['partition_by'][number], facts: PartitionFacts): string | null {
  switch (by) {
    case 'api_key':
      return facts.keyFingerprint ?? facts.caller;
    case 'caller':
      return facts.caller;
    case 'model':
      return facts.model;
    case 'upstream':
      return facts.upstream.id;
    case 'base_url':
      return facts.upstream.baseUrl;
    default:
      return facts.header(by.slice('header:'.length));
  }
}

/** Name of an absent or empty value. */
const NO_VALUE = 'none';

/** A hashed value. Encoded values contain no colon, and a fingerprint is already a keyed hash. */
const HASHED_VALUE = new RegExp(
  `^(?:h:[0-9a-f]{24}|(?:own-)?(?:fp|acct)_[0-9a-f]{24}|(?:own-)?${NO_VALUE})$`,
);

/** Whether the name of a partition contains no text of clients. */
export function isHashed(partition: string): boolean {
  if (partition === OVERFLOW_PARTITION) return true;
  return partition.split(',').every((value) => HASHED_VALUE.test(value));
}

/** Prefix of the last value of a partition for calls with their own provider keys, in a group with members. */
const OWN_PREFIX = 'own-';
const OWN_VALUE = /(?:^|,)own-(?:(?:fp|acct)_[0-9a-f]{24}|none)$/;

/**
 * Returns the partition for calls with their own provider key in a group with members. No member takes such a call with
 * its key, so each key, or its account, has the limits of the group for itself.
 *
 * @param keyOrAccount name of the account, or fingerprint of the key. null without a key
 */
export function ownPartition(partition: string | null, keyOrAccount: string | null): string {
  const own = OWN_PREFIX + (keyOrAccount ?? NO_VALUE);
  return partition === null ? own : `${partition},${own}`;
}

/** Whether a partition is for calls with their own key. `encode` ensures that no other name ends like this. */
export function isOwnPartition(partition: string | null): boolean {
  return partition !== null && OWN_VALUE.test(partition);
}

/** Returns the part of a partition's name from `partition_by`. null if the group is not split. */
export function splitPartition(partition: string | null): string | null {
  if (partition === null) return null;
  const split = partition.replace(OWN_VALUE, '');
  return split === '' ? null : split;
}

/**
 * Returns the partition whose pool takes the calls of `own`, from the answer of the directory. Calls with their own
 * keys share a pool with each other, but not with calls of members.
 */
export function sharedBy(own: string, answered: string): string {
  const isShared = answered !== own && isOwnPartition(own);
  return isShared ? ownPartition(splitPartition(own), null) : answered;
}

/** Encodes a value without `#`, which ends the name of a group, and without a comma, which separates values. */
function encode(value: string | null): string {
  let encoded = '';
  // A model from a body may contain half a surrogate pair, which cannot be encoded.
  for (const character of (value ?? '').slice(0, VALUE_LENGTH_MAX).toWellFormed()) {
    const next = encodeURIComponent(character);
    if (encoded.length + next.length > ENCODED_LENGTH_MAX) break;
    encoded += next;
  }
  // Clients choose some values, and none may look like a partition of another kind.
  if (OWN_VALUE.test(encoded)) return encoded.replace('o', '%6F');
  return encoded === '' ? NO_VALUE : encoded;
}
