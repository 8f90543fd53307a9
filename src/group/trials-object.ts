import { steadyClock } from '../runtime/steady-clock.ts';
import { DurableObject } from 'cloudflare:workers';
import type { ListedPool } from '../contract/rpc/directory-rpc.ts';
import { directoryOf, type Env } from '../env.ts';
import type {
  AcquireAnswer,
  AcquireRequest,
  GroupDefinition,
  RenewByIdAnswer,
  ResumeAnswer,
  ResumeRequest,
} from '../contract/rpc/group-rpc.ts';
import { logEvent } from '../runtime/log.ts';
import { poolOf } from '../routing/pool.ts';
import { isProvedLater, poolName } from '../contract/pool-name.ts';
import type { PoolStatus } from '../contract/status.ts';
import type { Proved, TrialsRpc } from '../contract/rpc/trials-rpc.ts';
import type { Outcome } from '../core/words/outcome.ts';
import type { UpstreamSignal } from '../core/words/signal.ts';
import type { Settlement } from '../core/words/usage.ts';
import { ProvedPools } from './proved-pools.ts';
import { Timers } from '../runtime/timers.ts';
import { within } from '../runtime/within.ts';
import { Trial, type TrialCalls } from './trial.ts';

/** Maximum of pools beyond which those go that only remember that their upstream wants a pause. */
const TRIALS_MAX = 2_000;
const FORGET_EVERY_MS = 1_000;

/** How old the definition of a pool on trial may be: the directory tells it nothing. */
const READ_MS_MAX = 4_000;
const DIRECTORY_TIMEOUT_MS = 1_000;

/** A read of a group's definition: when it began, and what came of it; null: nothing yet. */
interface LastRead {
  readonly at: number;
  readonly definition: GroupDefinition | null;
}

const PROVED: Proved = { kind: 'proved' };

/**
 * All pools whose keys had no success yet, in one object. They store nothing, and go when nobody uses them;
 * what is stored is which pools have had their success.
 *
 * Only where Headgate hosts itself: there the runtime opens a file for every object that is called.
 */
export class TrialsObject extends DurableObject<Env> implements TrialsRpc {
  readonly #proved: ProvedPools;
  readonly #trials = new Map<string, Trial>();
  readonly #timers = new Timers();
  #forgottenAt = 0;
  /** The directory's last answer about each group, so that not every pool asks for it. */
  readonly #read = new Map<string, LastRead>();
  readonly #reading = new Map<string, Promise<LastRead>>();

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#proved = new ProvedPools(ctx.storage.sql);
    if (this.#proved.knowsOlder) return;
    // Pools that a release without trials made go on where they are.
    ctx.blockConcurrencyWhile(() => this.#learnOlder()).catch(() => {});
  }

  async acquire(request: AcquireRequest): Promise<AcquireAnswer | Proved> {
    const trial = this.#trialOf(request);
    if (trial === null) return PROVED;
    const ask = async (): Promise<AcquireAnswer | Proved> => {
      const answer = await trial.call(async (pool) => {
        await this.#bringUpToDate(pool, request);
        return pool.acquire(request);
      });
      return answer ?? PROVED;
    };
    const answer = await ask();
    if (answer.kind !== 'moved' || !trial.isProved) return answer;
    // The hand-over may be the cause. It waits for other objects, so no caller may retry in a loop until it is over.
    await trial.handedOver;
    return ask();
  }

  async resume(request: ResumeRequest): Promise<ResumeAnswer | Proved> {
    const answer = await this.#trialOf(request)?.call((pool) => pool.resume(request));
    return answer ?? PROVED;
  }

  async renew(
    leaseId: string,
    status: number | null,
    held: ResumeRequest,
  ): Promise<RenewByIdAnswer | Proved> {
    const answer = await this.#trialOf(held)?.call((pool) => pool.renew(leaseId, status, held));
    return answer ?? PROVED;
  }

  async cancel(of: ListedPool, ticketId: string): Promise<void> {
    await this.#call(of, (pool) => pool.cancel(ticketId));
  }

  async release(
    of: ListedPool,
    leaseId: string,
    outcome: Outcome,
    status: number | null,
    settlement?: Settlement,
    held?: ResumeRequest,
  ): Promise<void> {
    await this.#call(of, (pool) => pool.release(leaseId, outcome, status, settlement, held));
  }

  async report(
    of: ListedPool,
    leaseId: string,
    signal: UpstreamSignal,
    isRepeat: boolean,
    held?: ResumeRequest,
  ): Promise<void> {
    await this.#call(of, (pool) => pool.report(leaseId, signal, isRepeat, held));
  }

  opened(of: ListedPool, sliceMs: number): Promise<boolean> {
    return this.#call(of, (pool) => pool.opened(sliceMs));
  }

  status(of: ListedPool): Promise<PoolStatus> {
    return this.#call(of, (pool) => pool.status());
  }

  // oxlint-disable-next-line require-await -- the contract is a promise; a throw must become a rejection
  async isProved({ group, partition }: ListedPool): Promise<boolean> {
    return this.#proved.has(poolName(group, partition));
  }

  /** Calls a pool wherever it is. */
  async #call<T>(of: ListedPool, work: (pool: TrialCalls) => Promise<T>): Promise<T> {
    const trial = this.#trialOf(of);
    const here =
      trial === null ? null : await trial.call(async (pool) => [await work(pool)] as const);
    if (here !== null) return here[0];
    return work(poolOf(this.env, of.group, await this.#partitionOf(of), null));
  }

  /** Finds the trial of a pool, or begins it. Null: the pool is past its trial. */
  #trialOf(of: ListedPool): Trial | null {
    const name = poolName(of.group, of.partition);
    const known = this.#trials.get(name);
    if (known !== undefined) return known;
    if (this.#proved.has(name)) return null;
    if (this.#trials.size >= TRIALS_MAX) this.#forgetUnused();
    const trial: Trial = new Trial(this.ctx, this.env, name, this.#timers, {
      onProved: () => {
        const handedOver = this.#handOver(of, trial);
        this.ctx.waitUntil(handedOver);
        return handedOver;
      },
      onIdle: () => this.#trials.delete(name),
    });
    this.#trials.set(name, trial);
    return trial;
  }

  async #handOver(of: ListedPool, trial: Trial): Promise<void> {
    const name = poolName(of.group, of.partition);
    try {
      const partition = await this.#partitionOf(of);
      await trial.handOver(poolOf(this.env, of.group, partition, null));
      this.#proved.add(name);
      this.#trials.delete(name);
    } catch (error) {
      // A pool that was handed over before the failure stays, and reports that to its callers: the disk may be full.
      if (!trial.isHandedOver) trial.goOn();
      logEvent('hand_over_failed', { group: of.group, error: String(error) });
    }
  }

  /** Lets go of what was learned of keys that nobody uses now. */
  #forgetUnused(): void {
    const now = steadyClock.now();
    if (now - this.#forgottenAt < FORGET_EVERY_MS) return;
    this.#forgottenAt = now;
    for (const [name, trial] of this.#trials) {
      if (!trial.isInUse) this.#trials.delete(name);
    }
  }

  /** Asks where the directory puts a pool: its group may have as many as it may. */
  #partitionOf({ group, partition }: ListedPool): Promise<string | null> {
    return partition === null
      ? Promise.resolve(null)
      : directoryOf(this.env).share(group, partition);
  }

  async #bringUpToDate(
    pool: TrialCalls,
    { group, configVersion, sinceVersion = configVersion }: AcquireRequest,
  ): Promise<void> {
    const known = this.#read.get(group);
    const isBehind = (known?.definition?.version ?? -1) < sinceVersion;
    const isOld = known === undefined || steadyClock.now() - known.at > READ_MS_MAX;
    const { definition } = await (known === undefined || isBehind || isOld
      ? this.#readOnce(group)
      : known);
    if (definition !== null) await pool.reconfigure(definition);
  }

  /** Reads a group's definition, once for all who want it now. Out of reach: what is known is better than a refusal. */
  #readOnce(group: string): Promise<LastRead> {
    let reading = this.#reading.get(group);
    if (reading === undefined) {
      const at = steadyClock.now();
      const answer = within(
        DIRECTORY_TIMEOUT_MS,
        directoryOf(this.env).definition(group),
        this.#timers.after,
      );
      reading = answer
        .catch(() => this.#read.get(group)?.definition ?? null)
        .then((definition) => {
          const read = { at, definition };
          this.#read.set(group, read);
          this.#reading.delete(group);
          return read;
        });
      this.#reading.set(group, reading);
    }
    return reading;
  }

  async #learnOlder(): Promise<void> {
    try {
      const pools = await directoryOf(this.env).pools();
      this.#proved.learnOlder(
        pools.filter(isProvedLater).map(({ group, partition }) => poolName(group, partition)),
      );
    } catch (error) {
      // They are on trial once more, and the next instance asks again.
      logEvent('directory_unreachable', { error: String(error) });
    }
  }
}
